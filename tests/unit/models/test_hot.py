"""The hot statements are SQL by hand; here they are held to the tables and to what is handed to them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from stepladder.models import child_jobs, commands, hot, retention, submissions
from stepladder.models.ids import uuid7
from stepladder.models.records import Claim, Stamp
from stepladder.models.rows import plain, step_json
from stepladder.models.tables import metadata
from stepladder.schemas.answer import Verdict
from stepladder.schemas.event import EventKind, HistoryEvent
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.job import Attempt, Job, Message, Turn
from stepladder.workflows.transition import Finished, Transition
from stepladder.workflows.visits import ChildCall, ListRun, SignalWait, ToolCall

if TYPE_CHECKING:
    from types import ModuleType

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATEMENTS = {
    name: statement
    for name, statement in {**vars(hot), **vars(commands), **vars(submissions), **vars(child_jobs)}.items()
    if name.isupper() and not name.startswith("_") and isinstance(statement, str)
}
SELDOM = {
    "workflows",
    "output_schemas",
    "prices",
    "principal_bounds",
    "engine_shares",
    "variants",
    "bulks",
    "experiments",
}
"""Tables that jobs do not write to on their way."""


def written(statement: str) -> dict[str, set[str]]:
    """The columns that a statement writes, by table."""
    columns: dict[str, set[str]] = {}
    for table, names in re.findall(r"INSERT INTO (\w+) \((.*?)\)", statement, re.DOTALL):
        columns.setdefault(table, set()).update(re.findall(r"\w+", names))
    for table, body in re.findall(r"UPDATE (\w+) SET(.*?)\n(?:\s*FROM|\s*WHERE)", statement, re.DOTALL):
        columns.setdefault(table, set()).update(re.findall(r"(?:^|,)\s*(\w+) = ", body, re.MULTILINE))
    return columns


def _texts(module: ModuleType) -> list[str]:
    return [value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hot_statement_writes_only_columns_that_exist(name: str) -> None:
    for table, columns in written(STATEMENTS[name]).items():
        assert columns <= set(metadata.tables[table].columns.keys())


def test_every_column_is_written() -> None:
    columns: dict[str, set[str]] = {}
    # Statements of retention are put on separate lines first.
    rarely = [re.sub(r" (FROM|WHERE) ", r"\n\1 ", text).replace("SET ", "SET\n") for text in _texts(retention)]
    for statement in [*STATEMENTS.values(), *rarely]:
        for name, names in written(statement).items():
            columns.setdefault(name, set()).update(names)
    for table in metadata.sorted_tables:
        if table.name not in SELDOM:
            by_default = {c.name for c in table.columns if "now()" in str(getattr(c.server_default, "arg", ""))}
            assert columns[table.name] | by_default == set(table.columns.keys()), table.name


def test_the_commit_reads_every_value_that_it_is_handed_and_no_other() -> None:
    job_id = UUID(int=1)
    job = Job(job_id, job_id, {}, NOW)
    claim = Claim(job, "w", 1, "worker", 1, 30.0, NOW)
    step = Transition(
        job,
        Finished(),
        events=(HistoryEvent(1, EventKind.JOB_CREATED),),
        visits=(
            Turn(1, "ask", NOW, 1, "?", "hash"),
            ToolCall(2, "run", NOW, "tool", Effect.READ, {}, "key"),
            SignalWait(3, "wait", NOW, "signal", UUID(int=2), None),
            ListRun(4, "lines", NOW, 5),
            ChildCall(5, "call", NOW, "other", ({},)),
        ),
        judged=(Attempt(1, 1, 10, verdict=Verdict(Outcome.EMPTY)),),
        opened=Attempt(1, 2, 10),
        messages=(Message(1, 0, "system", "hi"),),
    )
    handed = json.loads(step_json(claim, step, Stamp("r"), release=True))
    read = {
        source: set(re.findall(r"(\w+) \w+(?:\[\])?(?:,|$)", " ".join(columns.split())))
        for source, columns in re.findall(
            r"json_to_record(?:set)?\((.+?)\) AS \w+\((.*?)\n?\s*\)", hot.COMMIT, re.DOTALL
        )
    }
    assert read.pop("%(step)s::json") == set(handed)
    assert len(read) == 6
    for source, columns in read.items():
        assert columns == set(handed[source.removeprefix("step.")][0]), source


def test_an_attempt_that_is_opened_without_a_stamp_is_a_bug() -> None:
    job = Job(UUID(int=1), UUID(int=1), {}, NOW)
    claim = Claim(job, "w", 1, "worker", 1, 30.0, NOW)
    with pytest.raises(ValueError, match="has no stamp"):
        step_json(claim, Transition(job, Finished(), opened=Attempt(1, 1, 10)), None, release=True)


def test_json_keeps_every_text_and_refuses_what_is_not_json() -> None:
    odd = {"nul \0": "\ud800 alone", "face": "😀", "number": 2**70, "fraction": 1.0}
    assert json.loads(json_text(odd)) == odd
    json_text(odd).encode()
    with pytest.raises(ValueError, match="Out of range"):
        json_text(float("nan"))


def test_a_foreign_word_becomes_storable_text() -> None:
    assert plain("st\0op\udfff") == "st\ufffdop\ufffd"
    assert plain("stop 😀") == "stop 😀"
    assert plain(None) is None


def test_ids_are_version_7_and_sort_by_time() -> None:
    ids = [uuid7() for _ in range(3)]
    assert {(made.version, made.variant) for made in ids} == {(7, "specified in RFC 4122")}
    assert len(set(ids)) == 3
    moments = [made.int >> 80 for made in ids]
    assert moments == sorted(moments)
