"""Whatever is handed in: a message that says what and where, the right code, and not one row written."""

from __future__ import annotations

import http.server
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import make_conninfo

from stepladder.testing import Raw, ScriptedEngine

from .conftest import BILL, KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "no text": Garbage(("UTF-8", r"byte 0"), words=("latin.yaml", *GOOD)),
    "no file": Garbage((r"nowhere\.yaml cannot be read", "No such file"), words=("nowhere.yaml", *GOOD)),
    "duplicate keys": Garbage(
        (r"'start' occurs twice", rf"line {line_of('start: look') + 1}\b"),
        document=changed("start: look\n", "start: look\nstart: sum\n"),
    ),
    "an unknown state": Garbage(
        (r"no state `aprove`", "/states/sum/next", rf"line {line_of('next: approve')}\b"),
        document=changed("next: approve\n", "next: aprove\n"),
    ),
    "a state that cannot be reached": Garbage(
        ("/states/island", "no path leads"), document=BILL + "  island: {end: failed}\n"
    ),
    "a misspelt field": Garbage(("`rulez`", "did you mean `rules`"), document=changed("rules:", "rulez:")),
    "a template that reads a dunder": Garbage(
        ("/states/sum/ask", "template cannot be used", "__class__"),
        document=changed("{{ input.team }}", "{{ input.__class__ }}"),
    ),
    "an input that breaks the schema": Garbage(
        ('/: must have the field "team"', '/: must not have the field "hours"'),
        words=("bill.yaml", "--input", '{"hours": 1}'),
    ),
    "an input that is no JSON": Garbage(("--input", "byte 1"), words=("bill.yaml", "--input", "{team: search}")),
    "an input file that is not there": Garbage((r"nothing\.json",), words=("bill.yaml", "--input", "@nothing.json")),
    "a signal without a payload": Garbage(("approve", "NAME=JSON"), words=("bill.yaml", *GOOD, "--signal", "approve")),
    "a signal that is no JSON": Garbage(
        ("--signal", "cannot be read as JSON"), words=("bill.yaml", *GOOD, "--signal", "approval={action: approve}")
    ),
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
    "a module that leaves": Garbage(
        ("SystemExit", r"leaves\.py, line 1"), words=("bill.yaml", *GOOD), variables={"STEPLADDER_APP": "leaves"}
    ),
    "no module for the tool": Garbage(
        ("no tool `look_up`", "--app"), words=("bill.yaml", *GOOD), variables={"STEPLADDER_APP": None}
    ),
    "a document and a job": Garbage(
        ("or a job",), words=("bill.yaml", *GOOD, "--job", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")
    ),
    "no id of a job": Garbage(("'7' is not a job id",), words=("--job", "7")),
    "an id of no job": Garbage(("there is no job",), words=("--job", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")),
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
    "an engine's URL that is none": Garbage(
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
    "a database URL that is none": Garbage(
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
    shell.write("leaves.py", "raise SystemExit('enough')\n")
    (shell.folder / "latin.yaml").write_bytes(b"\xff\xfe\x00garbage")
    return shell


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_told_what_and_where_and_nothing_is_stored(stocked: Shell, what: str) -> None:
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


@pytest.fixture
def web_server() -> Iterator[str]:
    """No engine: whatever is asked for, there is a page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<html><title>It works!</title></html>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def test_a_web_page_in_place_of_an_engine(stocked: Shell, web_server: str) -> None:
    before = stocked.counts()
    done = stocked.run("run", "bill.yaml", *GOOD, STEPLADDER_ENGINE_URL=web_server)
    assert (done.code, done.out) == (3, "")
    assert "not an OpenAI-compatible engine" in done.err
    assert "It works!" in done.err
    assert stocked.counts() == before


def test_a_wrong_password_is_never_printed(stocked: Shell) -> None:
    """Wherever the server stands: this one knows no such role, and says so itself."""
    wrong = make_conninfo(stocked.database_url, user="nobody_here", password=PASSWORD)
    before = stocked.counts()
    done = stocked.run("run", "bill.yaml", *GOOD, "--log-level", "debug", STEPLADDER_DATABASE_URL=wrong)
    assert (done.code, done.out) == (3, "")
    assert "as nobody_here" in done.err
    assert PASSWORD not in done.err
    assert stocked.counts() == before


def test_an_engine_that_turns_into_a_web_page_costs_attempts_and_no_crash(stocked: Shell) -> None:
    """It served its models, and now answers every question with a proxy's page."""
    page = Raw(b"<html>502</html>", 502, "text/html")
    short = changed("name: bill", "name: short").replace(
        "next: approve\n", "retry: {transport: 0}\n    next: approve\n"
    )
    stocked.write("short.yaml", short)
    with ScriptedEngine(respond=lambda _: page, api_key=KEY) as engine:
        done = stocked.run("run", "short.yaml", *GOOD, "--json", STEPLADDER_ENGINE_URL=engine.url)
    assert done.code == 1
    assert done.json["failure"] == "attempts_exhausted"
    [attempt] = done.json["turns"][0]["attempts"]
    assert (attempt["outcome"], attempt["cause"], attempt["http_status"]) == ("transport", "http_5xx", 502)
