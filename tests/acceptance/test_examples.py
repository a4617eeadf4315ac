"""The examples run: three on the scripted engine here, three on the embedded model in `test_demo.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.schemas.job import Failure, JobStatus
from stepladder.testing import Fault, Ran, ScriptedEngine, run
from stepladder.wiring.app import load_kit, load_machine
from stepladder.workflows.visits import SignalWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit
    from stepladder.testing.script import Line

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/workflow.yaml"))
PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())


def kit_of(name: str) -> Kit:
    tools = EXAMPLES / name / "tools.py"
    return load_kit(str(tools) if tools.exists() else None)


def inputs_of(name: str) -> dict[str, Json]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((EXAMPLES / name / "inputs").glob("*.json"))}


async def play(
    database_url: str,
    name: str,
    value: str,
    lines: Sequence[Line],
    signals: dict[str, list[Json]] | None = None,
    others: Sequence[str] = (),
    **script: Any,
) -> tuple[Ran, ScriptedEngine]:
    with ScriptedEngine(lines, **script) as engine:
        text = (EXAMPLES / name / "workflow.yaml").read_text()
        ran = await run(
            text,
            inputs_of(name)[value],
            engine_url=engine.url,
            database_url=database_url,
            kit=kit_of(name),
            signals=signals,
            others=[(EXAMPLES / other / "workflow.yaml").read_text() for other in others],
        )
    return ran, engine


def path_of(ran: Ran) -> list[tuple[Any, Any]]:
    taken = [line.data for line in ran.events if line.kind.value == "transition"]
    return [(data["from"], data["action"]) for data in taken]


def test_there_are_seven_examples_and_one_that_is_called() -> None:
    called, others = "order_line", ["bug_report", "help_desk", "invoice", "purchase_order", "refund", "research"]
    assert set(NAMES) == {called, *others, "usage_bill"}


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_no_finding_and_its_inputs_fit(name: str) -> None:
    machine, findings = load_machine(str(EXAMPLES / name / "workflow.yaml"), kit_of(name))
    assert findings == ()
    assert inputs_of(name)
    for value in inputs_of(name).values():
        assert machine.input.violations(value) == ()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_that_changed_has_a_new_version(name: str) -> None:
    """Whoever ran it before has the old definition published. Raise `version`, then write the new hash here."""
    machine, _ = load_machine(str(EXAMPLES / name / "workflow.yaml"), kit_of(name))
    assert PUBLISHED[name] == {"version": machine.version, "hash": machine.hash}


# The refund ----------------------------------------------------------------------------------------------------------

REFUND: dict[str, Json] = {"reason": "It leaks.", "action": "refund", "cents": 3490}
APPROVE: dict[str, list[Json]] = {"approval": [{"action": "approve", "by": "kim"}]}


async def test_a_refund_is_paid_once_after_a_persons_word(database_url: str) -> None:
    ran, _ = await play(database_url, "refund", "kettle", [REFUND], APPROVE)
    assert ran.job.status is JobStatus.SUCCEEDED
    assert ran.job.result == {"cents": 3490, "receipt": "R-A-1001-3490", "by": "kim"}
    assert path_of(ran) == [("look_up", "ok"), ("decide", "refund"), ("confirm", "approve"), ("pay", "ok")]


async def test_a_refund_waits_and_shows_what_would_be_paid(database_url: str) -> None:
    ran, _ = await play(database_url, "refund", "kettle", [REFUND])
    assert (ran.job.status, ran.job.waiting_for) == (JobStatus.WAITING, "approval")
    wait = ran.transitions[-1].job.open
    assert isinstance(wait, SignalWait)
    assert wait.show == {"order": "A-1001", "cents": 3490, "reason": "It leaks."}
    assert wait.frozen == {"pay": {"tool": "pay_refund", "arguments": {"order": "A-1001", "cents": 3490}}}


async def test_a_refund_of_more_than_was_paid_is_rejected_by_its_rule(database_url: str) -> None:
    greedy: dict[str, Json] = {**REFUND, "cents": 5000}
    ran, engine = await play(database_url, "refund", "kettle", [greedy, REFUND], APPROVE)
    first, second = ran.turns[0].attempts
    assert (first.outcome, first.cause, second.outcome) == ("semantic", "at-most-what-was-paid", "valid")
    assert "/cents" in engine.requests[1].text


async def test_a_refund_that_a_person_rejects_pays_nothing(database_url: str) -> None:
    ran, _ = await play(database_url, "refund", "kettle", [REFUND], {"approval": [{"action": "reject", "by": "kim"}]})
    assert (ran.job.failure, path_of(ran)[-1]) == (Failure.REJECTED, ("confirm", "reject"))


# The purchase order --------------------------------------------------------------------------------------------------

LINES = ("3 boxes of paper A4", "10 pens, blue", "1 stapler")
READ: dict[str, Json] = {
    "? 3 boxes": {"sku": "PAPER-A4", "quantity": 3},
    "? 10 pens": {"sku": "PEN-BLUE", "quantity": 10},
    "? 1 stapler": {"sku": "STAPLER", "quantity": 1},
}
SPLIT: list[Line] = [*({"action": "line", "text": text} for text in LINES), {"action": "end", "text": ""}]


async def order(database_url: str, split: Sequence[Line], read: dict[str, Json] = READ) -> tuple[Ran, ScriptedEngine]:
    return await play(database_url, "purchase_order", "office", split, others=["order_line"], by_text=read)


async def test_an_order_is_split_into_lines_and_each_is_read_by_a_job_of_its_own(database_url: str) -> None:
    ran, engine = await order(database_url, SPLIT)
    assert ran.job.result == {"lines": list(READ.values()), "pieces": 14}
    assert path_of(ran) == [("split", "end"), ("read", "ok")]
    assert (ran.job.turn_count, len(engine.requests)) == (4, 7)


async def test_a_line_that_was_copied_before_is_refused_and_asked_again(database_url: str) -> None:
    ran, _ = await order(database_url, [*SPLIT[:2], SPLIT[0], *SPLIT[2:]])
    assert [attempt.cause for attempt in ran.turns[2].attempts] == ["unique", None]
    assert ran.job.status is JobStatus.SUCCEEDED


async def test_a_line_that_nobody_can_read_sends_the_order_to_a_person(database_url: str) -> None:
    strange: dict[str, Json] = {**READ, "? 10 pens": {"sku": "CROWBAR", "quantity": 10}}
    ran, _ = await order(database_url, SPLIT, strange)
    assert (ran.job.failure, path_of(ran)[-1]) == (Failure.REJECTED, ("read", "error"))


# The research loop ---------------------------------------------------------------------------------------------------


def search(query: str) -> Line:
    return {"action": "search", "query": query}


async def test_a_question_is_answered_from_what_was_found(database_url: str) -> None:
    answer = {"action": "answer", "text": "Obsidian."}
    ran, engine = await play(database_url, "research", "crystals", [search("crystals"), search("fast"), answer])
    assert ran.job.result == {"text": "Obsidian.", "searches": 2}
    assert "Obsidian cools so fast" in engine.requests[-1].text


async def test_the_fifth_visit_is_led_to_a_conclusion(database_url: str) -> None:
    lines = [search(word) for word in ("rock", "glass", "ice", "sand")]
    ran, _ = await play(
        database_url, "research", "crystals", [*lines, {"text": "The notes do not tell.", "known": False}]
    )
    assert ran.job.result == {"text": "The notes do not tell.", "searches": 4}
    assert ("think", "exhausted") in path_of(ran)


async def test_the_same_search_again_and_again_is_a_circle(database_url: str) -> None:
    ran, engine = await play(database_url, "research", "crystals", [search("lava")] * 4)
    assert ran.job.failure is Failure.LOOP
    assert len(engine.requests) == 4


# The help desk -------------------------------------------------------------------------------------------------------


async def test_one_tool_a_turn_is_chosen_and_run_until_the_reply(database_url: str) -> None:
    lines: list[Line] = [
        {"action": "get_user", "arguments": {"user": "kim"}},
        {"action": "get_device", "arguments": {"device": "L-17"}},
        {"action": "search_kb", "arguments": {"query": "disk"}},
        {"action": "reply", "text": "Empty the cache folder: the disk of L-17 is full."},
    ]
    ran, engine = await play(database_url, "help_desk", "build", lines)
    assert ran.job.status is JobStatus.SUCCEEDED
    assert [turn.action for turn in ran.turns] == ["get_user", "get_device", "search_kb", "reply"]
    assert '"disk_free_percent"' in engine.requests[2].text


async def test_a_tool_is_bound_by_its_own_arguments(database_url: str) -> None:
    lines: list[Line] = [
        {"action": "get_device", "arguments": {"user": "kim"}},
        {"action": "reply", "text": "Hello."},
    ]
    ran, _ = await play(database_url, "help_desk", "build", lines)
    assert ran.turns[0].attempts[0].outcome == "schema_violation"


async def test_a_tools_error_is_told_and_the_desk_goes_on(database_url: str) -> None:
    lines: list[Line] = [
        {"action": "get_user", "arguments": {"user": "nobody"}},
        Fault("reset_mid"),
        {"action": "reply", "text": "Who are you?"},
    ]
    ran, engine = await play(database_url, "help_desk", "build", lines)
    assert ran.job.status is JobStatus.SUCCEEDED
    assert "get_user failed: there is no user nobody" in engine.requests[1].text
    assert [attempt.outcome for attempt in ran.turns[1].attempts] == ["transport", "valid"]
