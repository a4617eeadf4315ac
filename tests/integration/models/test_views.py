"""The views that people read with psql: their columns are promised, and this is what stands in them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.sql import SQL, Identifier

from stepladder.models.ids import uuid7
from stepladder.queries.reads import Reads
from stepladder.schemas.answer import Completion, Lost, Received, Usage, Verdict, Violation
from stepladder.schemas.degraded import Degraded, Loss
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import JobStatus
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.workflows.job import Attempt, Turn
from stepladder.workflows.transition import Ask, Rest, Transition

from .conftest import NOW

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.workflows.job import Job

    from .conftest import Bench

PROMISED = {
    "job_overview": "job_id workflow version status state",
    "turn_outcomes": "job_id workflow version turn state outcome action attempts output started_at finished_at",
    "attempt_outcomes": (
        "job_id turn attempt outcome cause rung_termination rung_parse rung_schema rung_semantic errors finish_reason"
        " http_status prompt_tokens completion_tokens max_completion_tokens sampling ttft_ms tpot_ms duration_ms model"
        " engine_version grammar_backend schema_hash request_id content raw started_at"
    ),
    "failure_rates": "workflow version hour attempts " + " ".join(Outcome) + " first_pass_format semantic_pass",
}
WRONG = Verdict(
    Outcome.SEMANTIC,
    "arithmetic",
    Rungs.climbed(3),
    errors=(Violation("/total", "must be hours times 3", "arithmetic"),),
    observed=(Violation("/note", "odd: \0", "tone"),),
    completion=Completion(b'{"hours": 12, "total": 35}', finish_reason="stop", usage=Usage(100, 11)),
)
RIGHT = Verdict(
    Outcome.VALID,
    None,
    Rungs.climbed(4),
    output={"hours": 12, "total": 36},
    completion=Completion(b'{"hours": 12, "total": 36}', finish_reason="stop", usage=Usage(130, 1)),
)


async def two_attempts(bench: Bench, first: Verdict, second: Verdict, arrival: Any = None) -> Job:
    """A turn whose first answer was not accepted, and whose second was."""
    job, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt, arrival)
    again = Attempt(1, 2, 256, {"seed": 7}, note="Not accepted: \0")
    turn = claim.job.visits[0]
    assert isinstance(turn, Turn)
    retry = Transition(claim.job, Ask(turn, again), judged=(replace(attempt, verdict=first),), opened=again)
    assert await bench.commit(claim, retry)
    assert await bench.answer(claim, again)
    await bench.judge(claim, again, second)
    return job


@pytest.mark.parametrize("view", PROMISED)
async def test_a_view_has_the_promised_columns_first(bench: Bench, view: str) -> None:
    async with await bench.connect() as connection:
        columns = (await connection.execute(SQL("SELECT * FROM {}").format(Identifier(view)))).description or []
    promised = PROMISED[view].split()
    assert [column.name for column in columns][: len(promised)] == promised


async def test_an_attempt_that_broke_a_rule_is_shown_with_the_rule_and_its_bytes(bench: Bench) -> None:
    job = await two_attempts(bench, WRONG, RIGHT)
    wrong, right = await bench.rows("SELECT * FROM attempt_outcomes ORDER BY attempt")
    assert (wrong["job_id"], wrong["turn"], wrong["attempt"]) == (job.id, 1, 1)
    assert (wrong["outcome"], wrong["cause"], wrong["rung_schema"], wrong["rung_semantic"]) == (
        "semantic", "arithmetic", "passed", "failed",
    )  # fmt: skip
    assert wrong["errors"] == [{"pointer": "/total", "reason": "must be hours times 3", "source": "arithmetic"}]
    assert (wrong["content"], wrong["raw"], wrong["raw_encoding"]) == (
        b'{"hours": 12, "total": 35}', b'{"raw": 1}', "identity",
    )  # fmt: skip
    assert (wrong["http_status"], wrong["prompt_tokens"], wrong["completion_tokens"]) == (200, 100, 11)
    assert (wrong["ttft_ms"], wrong["tpot_ms"], wrong["duration_ms"]) == (20.0, 10.0, 120.0)
    assert (wrong["model"], wrong["engine_version"], wrong["grammar_backend"]) == ("model", "0.32.0", "xgrammar")
    assert (wrong["schema_hash"], wrong["request_id"], wrong["sampling"]) == ("a" * 64, str(job.id), {"seed": 7})
    assert (right["outcome"], right["cause"], right["errors"], right["tpot_ms"]) == ("valid", None, [], None)


async def test_a_stream_is_read_by_unpacking_it(bench: Bench) -> None:
    await two_attempts(bench, WRONG, RIGHT, Received(200, b"data: [DONE]\n\n", streamed=True))
    row = (await bench.rows("SELECT raw, raw_encoding FROM attempt_outcomes WHERE attempt = 1"))[0]
    assert row["raw_encoding"] == "gzip"
    assert gzip.decompress(row["raw"]) == b"data: [DONE]\n\n"


async def test_an_attempt_in_flight_is_shown_without_an_outcome(bench: Bench, database: Database) -> None:
    job = await bench.submit()
    await bench.ask(await bench.claim(job))
    (row,) = await bench.rows("SELECT * FROM attempt_outcomes")
    assert (row["outcome"], row["raw"], row["rung_parse"]) == (None, None, None)
    assert row["started_at"] is not None
    (turn,) = await bench.rows("SELECT * FROM turn_outcomes")
    assert (turn["outcome"], turn["attempts"], turn["finished_at"]) == (None, 1, None)
    assert await bench.rows("SELECT * FROM failure_rates") == []
    (read,) = await Reads(database).turns(job.id)
    (attempt,) = read.attempts
    assert (read.outcome, attempt.outcome, attempt.rungs, attempt.usage, attempt.errors) == (None, None, None, None, ())


async def test_a_turn_and_its_job_are_shown_once_each(bench: Bench) -> None:
    job = await two_attempts(bench, WRONG, RIGHT)
    (turn,) = await bench.rows("SELECT * FROM turn_outcomes")
    assert (turn["job_id"], turn["workflow"], turn["version"], turn["turn"]) == (job.id, "usage-bill", 1, 1)
    assert (turn["outcome"], turn["attempts"], turn["output"]) == ("valid", 2, {"hours": 12, "total": 36})
    (overview,) = await bench.rows("SELECT * FROM job_overview")
    assert (overview["job_id"], overview["status"], overview["turn_count"], overview["attempts"]) == (
        job.id, "running", 1, 2,
    )  # fmt: skip


async def test_failure_rates_count_attempts_and_tell_format_from_semantics(bench: Bench) -> None:
    broken = Verdict(Outcome.PARSE_FAILURE, "prose_before", Rungs.climbed(1))
    lost = Verdict(Outcome.TRANSPORT, "connect")
    await two_attempts(bench, WRONG, RIGHT)  # the first answer kept to the schema, and broke a rule
    await two_attempts(bench, broken, RIGHT)  # the first answer did not keep to the schema
    await two_attempts(bench, lost, RIGHT, Lost(Cause.CONNECT, "refused"))  # the first answer came second
    (rates,) = await bench.rows("SELECT * FROM failure_rates")
    assert {word: rates[word] for word in Outcome if rates[word]} == {
        "valid": 3, "semantic": 1, "parse_failure": 1, "transport": 1,
    }  # fmt: skip
    assert rates["attempts"] == 6
    assert (float(rates["first_pass_format"]), float(rates["semantic_pass"])) == (0.6667, 0.75)
    assert rates["hour"].minute == 0


async def test_the_read_service_tells_a_jobs_whole_story(bench: Bench, database: Database) -> None:
    job = await two_attempts(bench, WRONG, RIGHT)
    reads = Reads(database)
    overview = await reads.overview(job.id)
    assert overview is not None
    assert (overview.id, overview.status, overview.input, overview.attempts) == (
        job.id, JobStatus.RUNNING, {"team": "search"}, 2,
    )  # fmt: skip
    (turn,) = await reads.turns(job.id)
    assert (turn.ordinal, turn.state, turn.outcome, turn.output) == (1, "usage", Outcome.VALID, RIGHT.output)
    assert (turn.question, turn.finished_at) == ("Which team?", NOW)
    wrong, right = turn.attempts
    assert (wrong.outcome, wrong.rungs, wrong.errors, wrong.observed) == (
        Outcome.SEMANTIC, WRONG.rungs, WRONG.errors, WRONG.observed,
    )  # fmt: skip
    assert (wrong.content_bytes, wrong.usage) == (WRONG.completion.content, Usage(100, 11))
    assert (right.ordinal, right.note, right.max_completion_tokens) == (2, "Not accepted: \0", 256)
    events = await reads.events(job.id)
    assert [(line.ordinal, line.kind) for line in events] == [
        (1, EventKind.JOB_CREATED), (2, EventKind.TURN_STARTED),
    ]  # fmt: skip
    assert events[1].data == {"state": "usage"}
    assert await reads.events(job.id, after=1) == events[1:]


async def test_the_read_service_knows_nothing_of_a_job_that_does_not_exist(database: Database) -> None:
    reads, nobody = Reads(database), uuid7()
    assert await reads.overview(nobody) is None
    assert await reads.turns(nobody) == ()
    assert await reads.events(nobody) == ()


async def test_what_a_user_typed_cannot_break_a_view(bench: Bench) -> None:
    job = await bench.submit()
    claim, attempt = await bench.ask(await bench.claim(job), question="\0 \ud83d")
    await bench.answer(claim, attempt, Lost(Cause.TIMEOUT, "\0"))
    odd = Verdict(Outcome.TRANSPORT, "timeout", errors=(Violation("\0", "\ud83d", "\0"),))
    claim = await bench.judge(claim, attempt, odd)
    await bench.commit(claim, Transition(replace(claim.job, failure_detail="\0", state="usage"), Rest(NOW)))
    for view in PROMISED:
        assert len(await bench.rows(f"SELECT * FROM {view}")) == 1, view  # noqa: S608 -- a name of ours


async def test_what_was_kept_of_a_turn_is_shown_by_state_until_a_later_turn_of_it_ends(
    bench: Bench, database: Database
) -> None:
    job, claim = await bench.claimed()
    assert (await bench.rows("SELECT degraded FROM job_overview"))[0]["degraded"] is None

    async def turn(ordinal: int, state: str, value: Any, *, closed: bool = True) -> None:
        kept = None if value is None else Degraded(value, (Loss("/b", "cut: \0"),), 2, Outcome.TRUNCATION)
        visit = Turn(
            ordinal,
            state,
            NOW,
            ordinal,
            "?",
            "a" * 64,
            degraded=kept,
        )
        visit = visit.close(NOW) if closed else visit
        assert await bench.commit(claim, Transition(claim.job, Rest(NOW), visits=(visit,)), release=False)

    async def shown() -> dict[str, Any]:
        rows = await bench.rows("SELECT degraded FROM job_overview")
        found = await Reads(database).overview(job.id)
        assert found is not None
        seen = {} if found.degraded is None else json.loads(json_text(found.degraded))
        assert seen == (rows[0]["degraded"] or {})
        return {state: one["value"] for state, one in seen.items()}

    await turn(1, "one", {"a": "\0"})
    assert await shown() == {"one": {"a": "\0"}}
    rows = await bench.rows("SELECT degraded FROM turn_outcomes")
    assert rows[0]["degraded"]["lost"] == [{"pointer": "/b", "reason": "cut: \0"}]
    await turn(2, "two", [None])
    await turn(3, "one", {"a": 2})
    assert await shown() == {"one": {"a": 2}, "two": [None]}
    await turn(4, "one", None, closed=False)
    assert await shown() == {"one": {"a": 2}, "two": [None]}
    await turn(4, "one", None)
    assert await shown() == {"two": [None]}
