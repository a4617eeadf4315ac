"""Chapter 5. PostgreSQL holds the truth: a worker may die at any line, and another one continues its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.testing import Fault, wait_until

from .test_2_an_answer_climbs_four_rungs import RIGHT, SUM

if TYPE_CHECKING:
    from .conftest import System

VALUE = {"a": 2, "b": 3}


def test_a_turn_whose_worker_was_killed_is_asked_again(system: System) -> None:
    system.client.publish(SUM)
    system.answers[:] = [Fault("hang"), RIGHT]
    job = system.client.submit("sum", VALUE)
    wait_until(lambda: system.engine.in_flight == 1, what="the request is in flight")
    system.kill_worker()
    job = system.client.wait(job.id, timeout_s=60)
    (turn,) = system.client.turns(job.id)
    lost, answered = turn.attempts[0], turn.attempts[-1]
    assert (lost.outcome, lost.cause) == ("transport", "abandoned")
    assert answered.outcome == "valid"
    assert (job.status, job.result) == ("succeeded", RIGHT)


def test_a_submission_that_is_sent_twice_under_one_key_is_one_job(system: System) -> None:
    system.client.publish(SUM)
    system.answers[:] = [RIGHT]
    first, second = (system.client.submit("sum", VALUE, idempotency_key="order-4711") for _ in range(2))
    assert first.id == second.id
    assert system.client.wait(first.id, timeout_s=60).result == RIGHT
    assert len(system.client.turns(first.id)[0].attempts) == 1


def test_the_exact_bytes_of_every_answer_are_stored(system: System) -> None:
    fenced = '```json\n{"total": 5}\n```'
    system.client.publish(SUM)
    job = system.run("sum", VALUE, fenced, RIGHT)
    (turn,) = system.client.turns(job.id)
    assert turn.attempts[0].content == fenced
    assert b"```json" in system.client.raw(turn.attempts[0].id)
