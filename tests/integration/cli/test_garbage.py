"""Bad input of any kind: a message with its place, the right exit code, and no row written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import make_conninfo

from .conftest import BILL, KEY

if TYPE_CHECKING:
    from .conftest import Shell

GOOD = ("--input", '{"team": "search"}')
PASSWORD = "sesame-open"


@dataclass(frozen=True)
class Garbage:
    """``words`` behind ``stepladder run``; ``document`` is written to ``garbage.yaml``; ``says`` are patterns."""

    says: tuple[str, ...]
    words: tuple[str, ...] = ("garbage.yaml", *GOOD)
    document: str = BILL
    code: int = 2
    variables: dict[str, str | None] = field(default_factory=dict)


def line_of(words: str) -> int:
    return next(number for number, line in enumerate(BILL.splitlines(), 1) if words in line)


def changed(old: str, new: str) -> str:
    assert old in BILL
    return BILL.replace(old, new)


GARBAGE = {
    "broken YAML": Garbage(
        (r"garbage\.yaml has 1 error", r"line 4\b", "neither YAML nor JSON"), document="a: 1\nb:\n  - [1,\nc: }"
    ),
    "not UTF-8": Garbage(("UTF-8", r"byte 0"), words=("latin.yaml", *GOOD)),
    "no file": Garbage((r"nowhere\.yaml cannot be read", "No such file"), words=("nowhere.yaml", *GOOD)),
    "an unknown state": Garbage(
        (r"no state `aprove`", "/states/sum/next", rf"line {line_of('next: approve')}\b"),
        document=changed("next: approve\n", "next: aprove\n"),
    ),
    "an input that breaks the schema": Garbage(
        ('/: must have the field "team"', '/: must not have the field "hours"'),
        words=("bill.yaml", "--input", '{"hours": 1}'),
    ),
    "an input file that is not there": Garbage((r"nothing\.json",), words=("bill.yaml", "--input", "@nothing.json")),
    "a signal without a payload": Garbage(("approve", "NAME=JSON"), words=("bill.yaml", *GOOD, "--signal", "approve")),
    "a signal that the workflow never waits for": Garbage(
        ("aproval", "it waits for approval"), words=("bill.yaml", *GOOD, "--signal", 'aproval={"action": "approve"}')
    ),
    "a changed definition under a published version": Garbage(
        (r"bill 1 is published with another definition", r"version: 2"),
        document=changed("hours at 3", "hours at 4"),
    ),
    "an unknown module": Garbage(
        ("module nowhere cannot be imported", "--app"), words=("bill.yaml", *GOOD, "--app", "nowhere")
    ),
    "a module that breaks": Garbage(
        ("ZeroDivisionError", r"breaks\.py, line 2"), words=("bill.yaml", *GOOD, "--app", "breaks.py")
    ),
    "no module for the tool": Garbage(
        ("no tool `look_up`", "--app"), words=("bill.yaml", *GOOD), variables={"STEPLADDER_APP": None}
    ),
    "a document and a job": Garbage(
        ("or a job",), words=("bill.yaml", *GOOD, "--job", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")
    ),
    "an invalid job id": Garbage(("'7' is not a job id",), words=("--job", "7")),
    "a log level": Garbage(("LOG_LEVEL", "'debug'"), words=("bill.yaml", *GOOD, "--log-level", "loud")),
    "a model that is not served": Garbage(
        ("does not serve the model gpt-9", "scripted"), words=("bill.yaml", *GOOD, "--model", "gpt-9")
    ),
    "a dead engine": Garbage(
        (r"No engine answers at http://127\.0\.0\.1:1/v1", "STEPLADDER_ENGINE_URL"),
        words=("bill.yaml", *GOOD),
        code=3,
        variables={"STEPLADDER_ENGINE_URL": "http://127.0.0.1:1/v1"},
    ),
    "an invalid engine URL": Garbage(
        ("engine's URL",), words=("bill.yaml", *GOOD), variables={"STEPLADDER_ENGINE_URL": "gpu-1:8000"}
    ),
    "an engine that wants another key": Garbage(
        ("401", "STEPLADDER_ENGINE_API_KEY"),
        words=("bill.yaml", *GOOD),
        code=3,
        variables={"STEPLADDER_ENGINE_API_KEY": PASSWORD},
    ),
    "a dead database": Garbage(
        (r"PostgreSQL at 127\.0\.0\.1:1, database none as me", "STEPLADDER_DATABASE_URL"),
        words=("bill.yaml", *GOOD),
        code=3,
        variables={"STEPLADDER_DATABASE_URL": f"postgresql://me:{PASSWORD}@127.0.0.1:1/none"},
    ),
    "an invalid database URL": Garbage(
        ("database URL cannot be read", "postgresql://USER:PASSWORD@HOST"),
        words=("bill.yaml", *GOOD),
        variables={"STEPLADDER_DATABASE_URL": f"mysql://me:{PASSWORD}@db/none"},
    ),
}


@pytest.fixture(scope="module")
def stocked(shell: Shell, waiting_job: str) -> Shell:
    """The database holds one workflow and one job already."""
    assert waiting_job
    shell.write("breaks.py", "import stepladder\n1 / 0\n")
    (shell.folder / "latin.yaml").write_bytes(b"\xff\xfe\x00garbage")
    return shell


@pytest.mark.parametrize("what", GARBAGE)
def test_bad_input_is_explained_and_stores_nothing(stocked: Shell, what: str) -> None:
    garbage = GARBAGE[what]
    stocked.write("garbage.yaml", garbage.document)
    before, asked = stocked.counts(), len(stocked.engine.requests)
    done = stocked.run("run", *garbage.words, **garbage.variables)
    assert (done.code, done.out) == (garbage.code, ""), done.err
    for pattern in garbage.says:
        assert re.search(pattern, done.err), (pattern, done.err)
    assert done.err.startswith("error: ")
    assert PASSWORD not in done.err
    assert KEY not in done.err
    assert stocked.counts() == before
    assert len(stocked.engine.requests) == asked


def test_a_wrong_password_is_never_printed(stocked: Shell) -> None:
    """Not even where the server itself names the role that it does not know."""
    wrong = make_conninfo(stocked.database_url, user="nobody_here", password=PASSWORD)
    before = stocked.counts()
    done = stocked.run("run", "bill.yaml", *GOOD, "--log-level", "debug", STEPLADDER_DATABASE_URL=wrong)
    assert (done.code, done.out) == (3, "")
    assert "as nobody_here" in done.err
    assert PASSWORD not in done.err
    assert stocked.counts() == before
