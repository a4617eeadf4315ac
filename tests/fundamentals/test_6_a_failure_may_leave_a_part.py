"""Chapter 6. A turn that is given up leaves nothing, unless its document says so; and what it leaves is no output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder import BadDocumentError, tool
from stepladder.testing import Answer, Fault, ScriptedEngine, run, wait_until

if TYPE_CHECKING:
    from .conftest import System


@tool("fundamentals.send", effect="idempotent")
def send() -> None: ...


LETTER = """
name: letter
version: 1
start: read
states:
  read:
    ask: "Who wrote the letter, and of what?"
    output:
      type: object
      properties: {from: {type: string}, about: {type: string}, pages: {type: integer}}
      required: [from, about, pages]
      additionalProperties: false
    degrade: true
    next: done
    on_failure: {attempts_exhausted: by_hand}
  by_hand:
    ask: "{{ 'known' if turns.read is defined else 'unknown' }}: who shall read it?"
    output: {type: object, properties: {who: {type: string}}, required: [who], additionalProperties: false}
    next: done
  done: {end: succeeded, result: {read: "has(turns.read)", who: "turns.by_hand.who"}}
"""
FAILING = LETTER.replace("    on_failure: {attempts_exhausted: by_hand}\n", "").split("  by_hand:")[0] + (
    "  done: {end: succeeded, result: turns.read}\n"
)


def cut(text: str) -> Answer:
    return Answer(text, finish_reason="length", completion_tokens=512)


CUT = [cut('{"fr'), cut('{"from": "Ada", "about": "an eng'), cut('{"from": "Ada", "about": "an engine", "pa')]


async def test_three_answers_cut_off_leave_what_was_whole_in_the_last(
    database_url: str,
) -> None:
    with ScriptedEngine(CUT) as engine:
        ran = await run(FAILING, engine_url=engine.url, database_url=database_url)
    job, [turn] = ran.job, ran.turns
    assert (job.status, job.failure, job.result) == ("failed", "attempts_exhausted", None)
    assert (turn.output, turn.outcome) == (None, "truncation")
    assert job.degraded == {"read": turn.degraded}
    assert turn.degraded is not None
    assert turn.degraded.value == {"from": "Ada", "about": "an engine"}
    assert (turn.degraded.attempt, turn.degraded.outcome) == (3, "truncation")
    assert [(loss.pointer, loss.reason) for loss in turn.degraded.lost] == [
        ("", "the answer was cut off; everything after the last complete value is lost"),
        ("", 'still breaks the schema: must have the field "pages"'),
    ]


async def test_it_is_off_unless_the_document_says_so(database_url: str) -> None:
    with ScriptedEngine(CUT) as engine:
        ran = await run(FAILING.replace("    degrade: true\n", ""), engine_url=engine.url, database_url=database_url)
    assert (ran.job.failure, ran.job.degraded) == ("attempts_exhausted", None)
    assert ran.turns[0].degraded is None


async def test_the_machine_goes_its_way_as_if_nothing_was_kept(database_url: str) -> None:
    with ScriptedEngine([*CUT, {"who": "a person"}]) as engine:
        ran = await run(LETTER, engine_url=engine.url, database_url=database_url)
        last = engine.requests[-1]
    assert (ran.job.status, ran.job.result) == ("succeeded", {"read": False, "who": "a person"})
    assert ran.job.degraded is not None  # flagged beside the result
    assert "unknown: who shall read it?" in last.text
    assert b"Ada" not in last.raw


async def test_what_is_kept_never_drives_a_tool(database_url: str) -> None:
    send = "  send: {tool: fundamentals.send, next: {ok: done}}"
    text = LETTER.replace("    next: done\n  done", f"    next: send\n{send}\n  done")
    with pytest.raises(BadDocumentError) as refused:
        await run(text, engine_url="http://127.0.0.1:1/v1", database_url=database_url)
    assert "(read -> by_hand -> send)" in str(refused.value)


def test_another_worker_keeps_what_the_killed_one_would_have_kept(system: System) -> None:
    best = '{"from": "Ada", "about": "an engine", "pages": "three"}'
    system.client.publish(FAILING)
    system.answers[:] = [best, Fault("hang"), cut('{"fr'), cut('{"from": "A')]
    job = system.client.submit("letter")
    wait_until(lambda: system.engine.in_flight == 1 and len(system.answers) == 2, what="the second request")
    system.kill_worker()
    job = system.client.wait(job.id, timeout_s=60)
    kept = (job.degraded or {})["read"]
    assert kept.value == {"from": "Ada", "about": "an engine"}
    assert (kept.attempt, kept.outcome) == (1, "schema_violation")
