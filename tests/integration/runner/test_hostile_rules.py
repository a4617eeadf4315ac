"""Rules in Python that hang, exit, crash or lie: the rule is broken, and nothing else is."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.runner.machines import Machines
from stepladder.runner.rules import BoundedRule, bounded
from stepladder.schemas.tool import Kit
from stepladder.sdk import kit
from stepladder.testing import Answer, eventually
from stepladder.validation.semantic import Rule, broken

from .conftest import asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Open


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise SystemExit


class WeirdText(str):
    __slots__ = ()

    def strip(self, *_: object) -> str:
        raise RuntimeError


def spin(*_: object) -> None:
    while True:
        pass


def spin_deaf(*_: object) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(1)


def crash(*_: object) -> None:
    faulthandler.disable()  # pytest's, which would print all of its stack
    ctypes.string_at(0)


def raising(error: Callable[[], BaseException]) -> Callable[..., None]:
    def rule(*_: object) -> None:
        raise error()

    return rule


HOSTILE: dict[str, tuple[Callable[..., Any], str]] = {
    "spins": (spin, "it took longer than 0.3 s"),
    "sleeps": (lambda _: time.sleep(60), "it took longer than 0.3 s"),
    "is deaf": (spin_deaf, "it took longer than 0.3 s"),
    "a pattern in C": (lambda _: re.match(r"(a+)+$", "a" * 40 + "b"), "it took longer than 0.3 s"),
    "stops itself": (lambda _: os.kill(os.getpid(), signal.SIGSTOP), "it took longer than 0.3 s"),
    "exits": (lambda _: sys.exit(3), "SystemExit: 3"),
    "is cancelled": (raising(asyncio.CancelledError), "CancelledError"),
    "is interrupted": (raising(KeyboardInterrupt), "KeyboardInterrupt"),
    "unreadable": (raising(UnreadableError), "UnreadableError: its text cannot be read"),
    "ends the process": (lambda _: os._exit(0), "its process ended"),
    "crashes": (crash, "its process ended"),
    "another type": (lambda _: ["no"], "the rule returned list, not None or a text"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_rule_does_breaks_that_rule_alone(name: str) -> None:
    function, why = HOSTILE[name]
    hostile = BoundedRule(lambda output, **_: function(output), 0.3)
    fine = BoundedRule(lambda output, **_: None if output == 1 else "must be 1", 5.0)
    for one in (hostile, fine):
        bounded(Kit(rules={"r": one}))
    rules = [Rule("hostile", call=hostile), Rule("fine", call=fine)]
    [violation] = broken(rules, 1, {})
    assert violation.source == "hostile"
    assert violation.reason == f"could not be checked: {why}"
    assert [one.source for one in broken(rules, 2, {})] == ["hostile", "fine"]


def test_a_rule_that_is_not_bounded_fails_closed_all_the_same() -> None:
    for function in (raising(SystemExit), raising(UnreadableError), raising(asyncio.CancelledError)):
        [violation] = broken([Rule("r", call=lambda output, f=function, **_: f(output))], 1, {})
        assert violation.reason.startswith("could not be checked: ")
    [violation] = broken([Rule("r", call=lambda *_, **__: WeirdText(" no "))], 1, {})
    assert violation.reason == "no"


async def test_jobs_beside_a_rule_that_spins_go_on_and_no_lease_is_lost(works: Open) -> None:
    @stepladder.rule("spins")
    def spins(output: Any, **_: Any) -> None:
        while output:
            pass

    w = await works(*[{"n": 1}] * 2)
    hanging = await w.submit({"only": asking(rules=[{"id": "spins", "call": "spins"}], retry={"attempts": 1})})
    other = await w.submit({"only": asking()})
    runner = w.runner(lease_s=0.6)
    slow = asyncio.create_task(runner.run_slice(hanging))
    await eventually(lambda: len(w.engine.requests) == 1, what="the answer of the first is judged")
    await runner.run_slice(other)
    assert (await w.job(other)).status == "succeeded"
    await slow
    assert (await w.job(hanging)).failure == "attempts_exhausted"
    assert await w.outcomes(hanging) == [("semantic", "spins")]
    [attempt] = await w.attempts(hanging)
    assert "longer than 2 s" in attempt.errors[0].reason


async def test_a_rule_works_on_exact_values_and_changes_none(works: Open) -> None:
    @stepladder.rule("exact")
    def exact(output: Any, *, input: Any, **_: Any) -> str | None:  # noqa: A002 -- the contract's word
        right = output["n"] == input["big"] == 10**30 and type(output["n"]) is int
        output["n"] = 0
        return None if right else "must be exact"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    w = await works(Answer('{"n": 1000000000000000000000000000000}'))
    done = await w.run({"only": asking(output=schema, rules=[{"id": "exact", "call": "exact"}])}, {"big": 10**30})
    assert done.status == "succeeded"


def test_every_way_to_a_machine_bounds_its_rules() -> None:
    @stepladder.rule("r")
    def rule(*_: object, **__: object) -> None: ...

    machines = Machines(None, kit.registered())  # type: ignore[arg-type]  # no store is asked
    assert all(isinstance(one, BoundedRule) for one in machines.kit.rules.values())
