"""What is kept of a turn that was given up, that its failure goes its way all the same, and where it may not be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepladder.lint import graph
from stepladder.schemas.answer import Violation
from stepladder.schemas.degraded import Degraded, Loss
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.degrade import TRIES
from stepladder.workflows.job import Turn
from stepladder.workflows.names import names_of
from stepladder.workflows.transition import Ask
from support.machines import Play, codes_of, document, findings_of, loaded, play, the

OUTPUT = (
    "{type: object, properties: {a: {type: integer}, b: {type: string}}, required: [a, b], additionalProperties: false}"
)
ONE = document(
    f"""
one: {{ask: "?", output: {OUTPUT}, degrade: true, next: done, on_failure: {{attempts_exhausted: two}}}}
two: {{ask: "{{{{ 'there' if turns.one is defined else 'nothing' }}}}", output: {OUTPUT}, next: done}}
done: {{end: succeeded, result: {{one: "has(turns.one)", seen: "size(visits)"}}}}
"""
)
CUT = b'{"a": 1, "b": "half a te'
LOST_B = (
    Loss("", "the answer was cut off; everything after the last complete value is lost"),
    Loss("", 'still breaks the schema: must have the field "b"'),
)


def cut(text: bytes = CUT) -> dict[str, Any]:
    return {"outcome": Outcome.TRUNCATION, "cause": Cause.BUDGET, "content": text}


def turn_of(job: Play, index: int = 0) -> Turn:
    turn = job.job.visits[index]
    assert isinstance(turn, Turn)
    return turn


def fail_out(job: Play, *answers: dict[str, Any]) -> Play:
    job.claim()
    for answer in answers:
        job.fails(**answer)
    return job


def test_a_turn_cut_off_three_times_keeps_what_was_whole_and_says_what_was_not() -> None:
    job = fail_out(play(ONE), cut(b'{"a": 3'), cut(b'{"a": 2, "b'), cut())
    assert turn_of(job).degraded == Degraded({"a": 1}, LOST_B, 3, Outcome.TRUNCATION)
    assert (turn_of(job).output, turn_of(job).outcome) == (None, Outcome.TRUNCATION)
    [said] = [event for step in job.steps for event in step.events if event.kind is EventKind.TURN_DEGRADED]
    assert (said.turn, said.attempt, said.data) == (1, 3, {"outcome": "truncation", "lost": 2})
    kinds = job.events()
    assert kinds[kinds.index(EventKind.TURN_FAILED) + 1] is EventKind.TURN_DEGRADED


def test_the_failure_goes_its_way_as_without_it_and_nothing_reads_what_is_kept() -> None:
    job = fail_out(play(ONE), cut(), cut())  # the same answer twice
    plain = fail_out(play(ONE.replace("degrade: true, ", "")), cut(), cut())
    assert turn_of(job).degraded is not None
    assert turn_of(plain).degraded is None
    assert job.path() == plain.path() == [("attempts_exhausted", "two")]
    assert names_of(job.job) == names_of(plain.job)
    assert job.job.transcript == plain.job.transcript == ()
    ask = the(Ask, job.steps[-1])
    assert ask.turn.question.startswith("nothing\n")
    assert ask.turn == the(Ask, plain.steps[-1]).turn
    job.says({"a": 1, "b": "x"})
    assert (job.job.status, job.job.result) == (JobStatus.SUCCEEDED, {"one": False, "seen": 1})


def test_the_answer_that_climbed_highest_is_kept_and_of_equals_the_newest() -> None:
    semantic = {"outcome": Outcome.SEMANTIC, "cause": "r", "errors": (Violation("/a", "must be 2", "r"),)}
    job = fail_out(
        play(ONE),
        cut(),
        semantic | {"content": b'{"a": 1, "b": "x"}', "passed": 3},
        {"outcome": Outcome.SCHEMA_VIOLATION, "cause": "required", "content": b'{"a": 2}', "passed": 2},
    )
    assert turn_of(job).degraded == Degraded(
        {"a": 1, "b": "x"}, (Loss("/a", "breaks the rule r: must be 2"),), 2, Outcome.SEMANTIC
    )
    job = fail_out(play(ONE), cut(b'{"a": 4, "b": "'), cut(b'{"a": 5, "b": "'), cut(b"{"))
    kept = turn_of(job).degraded
    assert kept is not None
    assert (kept.value, kept.attempt) == ({"a": 5}, 2)


def test_that_the_rules_were_never_tried_is_said() -> None:
    rules = "rules: [{id: r, check: 'true', reason: x}, {id: s, call: iban}]"
    job = fail_out(play(ONE.replace("degrade: true", f"degrade: true, {rules}")), cut(), cut())
    kept = turn_of(job).degraded
    assert kept is not None
    assert kept.lost == (*LOST_B, Loss("", "the turn's rules were never evaluated: r, s"))


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": Outcome.REFUSED, "cause": Cause.CONTENT_FILTER, "content": CUT},
        {"outcome": Outcome.REQUEST_REJECTED, "cause": Cause.CONTEXT_LENGTH},
        {"outcome": Outcome.SCHEMA_REJECTED},
    ],
)
def test_a_declined_turn_keeps_nothing_even_of_earlier_answers(
    answer: dict[str, Any],
) -> None:
    job = fail_out(play(ONE), cut(), answer)
    assert job.job.status is JobStatus.FAILED
    assert turn_of(job).degraded is None


def test_lost_and_empty_answers_leave_nothing_and_do_not_hide_what_came_before() -> None:
    lost = {"outcome": Outcome.TRANSPORT, "cause": Cause.STREAM_INCOMPLETE, "content": CUT}
    empty = {"outcome": Outcome.EMPTY, "cause": Cause.NO_CONTENT, "content": b" "}
    once = ONE.replace("degrade: true", "degrade: true, retry: {attempts: 2, transport: 0}")
    assert turn_of(fail_out(play(once), lost)).degraded is None
    assert turn_of(fail_out(play(once), empty, {**empty, "content": b"  "})).degraded is None
    abandoned = {**lost, "cause": Cause.ABANDONED}
    kept = turn_of(fail_out(play(once), cut(), *[abandoned] * TRIES, lost)).degraded
    assert kept is not None
    assert (kept.value, kept.attempt) == ({"a": 1}, 1)


@pytest.mark.parametrize(
    ("limits", "failure"), [({"token_budget": 15}, Failure.TOKEN_BUDGET), ({"deadline_s": 0.001}, Failure.DEADLINE)]
)
def test_a_bound_of_the_job_leaves_what_there_is(limits: dict[str, Any], failure: Failure) -> None:
    job = play(ONE.replace("start: one", f"start: one\nlimits: {json.dumps(limits)}")).begun()
    job.fails(**cut(), tokens=20, after=1)
    assert job.job.failure is failure
    kept = turn_of(job).degraded
    assert kept is not None
    assert kept.value == {"a": 1}


def test_a_cancelled_turn_keeps_nothing() -> None:
    job = fail_out(play(ONE), cut())
    job.cancel()
    assert turn_of(job).degraded is None


# Where it may not be -----------------------------------------------------------------------------------------------

LOOK = "{tool: look, arguments: {q: \"'x'\"}, next: {ok: done, error: done}}"


def degrading(rest: str, next_: str = "next: done") -> str:
    return document(f'one: {{ask: "?", output: {OUTPUT}, degrade: true, {next_}}}\n{rest}\ndone: {{end: succeeded}}')


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (degrading(f"run: {LOOK}", "next: run"), "one -> run"),
        (degrading(f"run: {LOOK}", "next: done, on_failure: {deadline: run}"), "one -> run"),
        (degrading(f"run: {LOOK}", "max_visits: 2, next: {always: done, exhausted: run}"), "one -> run"),
        (
            degrading(
                f"wait: {{wait: {{signal: s, timeout_s: 5}}, next: {{go: two, timeout: done}}}}\n"
                f'two: {{ask: "?", output: {OUTPUT}, next: one, on_failure: {{refused: run}}}}\nrun: {LOOK}',
                "next: wait",
            ),
            "one -> wait -> two -> run",
        ),
    ],
)
def test_a_turn_that_leads_to_a_tool_by_any_path_may_not_degrade(text: str, path: str) -> None:
    [finding] = [one for one in findings_of(text) if one.code == "degrade_before_tool"]
    assert (finding.pointer, finding.severity) == ("/states/one/degrade", "error")
    assert f"({path})" in finding.message
    assert finding.remedy.startswith("remove `degrade`")
    assert codes_of(text.replace("degrade: true", "degrade: false")) == []


def test_a_turn_that_leads_to_a_child_job_may_not_degrade() -> None:
    text = loaded(degrading("child: {call: another, next: {ok: done, error: done}}", "next: child")).document
    [finding] = graph.check_degrade(text.states)
    assert (finding.code, finding.pointer) == ("degrade_before_tool", "/states/one/degrade")
    assert "a child job, which may run tools (one -> child)" in finding.message


def test_a_turn_that_chooses_a_tool_may_not_degrade() -> None:
    text = document('one: {ask: "?", tools: [look], degrade: true, next: {look: done}}\ndone: {end: succeeded}')
    assert codes_of(text) == [("degrade_before_tool", "/states/one/degrade")]


def test_a_tool_before_the_turn_is_no_hindrance_and_a_circle_ends() -> None:
    text = document(
        f"run: {LOOK.replace('ok: done', 'ok: one')}\n"
        f'one: {{ask: "?", output: {OUTPUT}, degrade: true, next: two}}\n'
        f'two: {{ask: "?", output: {OUTPUT}, degrade: true, max_visits: 3, next: {{always: one, exhausted: done}}}}\n'
        "done: {end: succeeded}"
    )
    assert codes_of(text) == []
