"""Chapter 9. A failed job is judged again, resumed, or forked with changes; and no effect takes place twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from stepladder.testing import Line

    from .conftest import System

# The tool `ship` is irreversible: it writes a line to a ledger. See conftest.py.
PARCEL = """
name: parcel
version: 1
input: {type: object, properties: {parcel: {type: string, maxLength: 20}}, required: [parcel]}
start: weigh
states:
  weigh:
    ask: "What does {{ input.parcel }} weigh?"
    output: {type: object, properties: {kg: {type: integer, minimum: 1, maximum: 90}}, required: [kg]}
    next: confirm
  confirm:
    wait: {signal: approval}
    next: {send: ship, keep: kept}
  ship:
    tool: ship
    arguments: {parcel: "input.parcel"}
    next: {ok: tell, error: kept}
  tell:
    ask: "The label is {{ tools.ship.label }}. Tell the customer."
    output: {type: object, properties: {text: {type: string, maxLength: 200}}, required: [text]}
    rules: [{id: label-told, check: "output.text.contains(tools.ship.label)", reason: "must name the label"}]
    retry: {attempts: 1}
    next: done
  done: {end: succeeded, result: turns.tell.text}
  kept: {end: failed}
"""
WEIGHT = {"kg": 4}
VAGUE, CLEAR = {"text": "It is on its way."}, {"text": "It goes by label L-1."}


def ship(system: System, *answers: Line) -> Any:
    """A job that was approved, as it ended."""
    system.client.publish(PARCEL)
    job = system.run("parcel", {"parcel": "P-7"}, *answers)
    return approve(system, job)


def approve(system: System, job: Any) -> Any:
    """Sends the signal, which names the wait that it answers."""
    assert job.waiting_for == "approval"
    system.client.signal(job.id, "approval", {"action": "send", "wait_id": job.wait.wait_id})
    return system.client.wait(job.id, timeout_s=60)


def test_stored_answers_are_judged_again_without_an_engine(system: System) -> None:
    job = ship(system, WEIGHT, CLEAR)
    requests = len(system.engine.requests)
    same = system.client.revalidate(job.id)
    stricter = system.client.revalidate(job.id, set={"states.weigh.output.properties.kg.maximum": 3})
    assert len(system.engine.requests) == requests
    assert same.changed == 0
    assert [(one.was, one.now) for one in stricter.attempts] == [("valid", "schema_violation"), ("valid", "valid")]


def test_a_resume_asks_only_the_failed_turn_and_ships_nothing_twice(system: System) -> None:
    failed = ship(system, WEIGHT, VAGUE)
    assert (failed.failure, failed.state, system.ledger) == ("attempts_exhausted", "tell", ["P-7"])
    system.answers[:] = [CLEAR]
    resumed = system.client.wait(system.client.replay(failed.id, "resume").id, timeout_s=60)
    turns = system.client.turns(resumed.id)
    again, before = (system.engine.requests[index].body["messages"] for index in (-1, -2))
    assert again == before
    assert (resumed.status, resumed.result, resumed.replay_of) == ("succeeded", CLEAR["text"], failed.id)
    assert [(turn.state, turn.carried) for turn in turns] == [("weigh", True), ("tell", False)]
    assert system.ledger == ["P-7"]


@pytest.mark.parametrize("from_turn", [2, 1])
def test_a_fork_with_a_changed_question_ships_nothing_twice(system: System, from_turn: int) -> None:
    question = "The label is {{ tools.ship.label }}. Tell the customer, and name the label."
    failed = ship(system, WEIGHT, VAGUE)
    answers: list[Line] = [WEIGHT, CLEAR]
    system.answers[:] = answers[from_turn - 1 :]
    forked = system.client.replay(failed.id, "fork", from_turn=from_turn, set={"states.tell.ask": question})
    if from_turn == 1:  # the wait is a new one, and wants a new signal
        approve(system, system.settled(forked))
    forked = system.client.wait(forked.id, timeout_s=60)
    assert forked.status == "succeeded"
    assert system.engine.requests[-1].text.startswith(question.replace("{{ tools.ship.label }}", "L-1"))
    assert system.ledger == ["P-7"]
