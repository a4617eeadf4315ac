"""Tools of every kind: what they are given, what becomes of what they give, and what is never run twice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

import stepladder
from stepladder.models.records import Settling
from stepladder.runner.runner import SliceEnd
from stepladder.runner.tools import run_tool
from stepladder.schemas.responses import Reason
from stepladder.schemas.tool import Effect
from stepladder.sdk import kit
from stepladder.testing import Fault, eventually
from stepladder.workflows.events import Settled, ToolReturned
from stepladder.workflows.visits import ToolCall

from .conftest import asking

if TYPE_CHECKING:
    from .conftest import Open

RESULT = {"end": "succeeded", "result": {"got": "tools.look"}}
ERROR = {"end": "succeeded", "result": {"kind": "errors.look.kind", "message": "errors.look.message"}}


def looking(tool: str = "look", **fields: Any) -> dict[str, Any]:
    """A machine of one tool, which ends with its result or with its error."""
    look = {"tool": tool, "next": {"ok": "got", "error": "failed"}} | fields
    return {"look": look, "got": RESULT, "failed": ERROR}


async def test_sync_and_async_tools_return_their_results(works: Open) -> None:
    threads: list[int] = []

    @stepladder.tool("sync", effect="read")
    def sync(team: str, hours: int = 3) -> dict[str, Any]:
        threads.append(threading.get_ident())
        return {"team": team, "hours": hours}

    @stepladder.tool("asynchronous", effect="read")
    async def asynchronous(team: str, *, hours: int = 3) -> tuple[str, int]:
        threads.append(threading.get_ident())
        return team, hours

    w = await works()
    arguments = {"team": "input.team"}
    done = await w.run(looking("sync", arguments=arguments), {"team": "é"})
    assert (done.status, done.result) == ("succeeded", {"got": {"team": "é", "hours": 3}})
    done = await w.run(looking("asynchronous", arguments=arguments), {"team": "é"})
    assert (done.status, done.result) == ("succeeded", {"got": ["é", 3]})
    assert (threads[0] == threading.get_ident(), threads[1] == threading.get_ident()) == (False, True)


class OutOfStockError(Exception):
    pass


def _raise(error: BaseException) -> Any:
    raise error


class OwnError(BaseException):
    pass


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Hostile(Iterator[int]):
    def __next__(self) -> int:
        raise OwnError("not with me")


def _laughs() -> Any:
    laughs: list[Any] = []
    for _ in range(30):
        laughs = [laughs] * 10
    return laughs


def _circle() -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    ("give", "kind", "words"),
    [
        (lambda: _raise(OutOfStockError("no more of it")), "OutOfStockError", "no more of it"),
        (lambda: next(iter([])), "StopIteration", ""),
        (lambda: _raise(SystemExit("enough")), "SystemExit", "enough"),
        (lambda: _raise(ValueError("x" * 5000)), "ValueError", "x" * 2000),
        (lambda: object(), "bad_result", "not JSON"),
        (lambda: float("nan"), "bad_result", ""),
        (lambda: _circle(), "bad_result", ""),
        (lambda: "\ud800", "bad_result", ""),
        (lambda: "x" * 1_000_001, "bad_result", "1,000,000 are allowed"),
        (lambda: [0] * 10_000_000, "bad_result", "1,000,000 are allowed"),
        (lambda: _laughs(), "bad_result", "1,000,000 are allowed"),
        (lambda: itertools.count(), "bad_result", "1,000,000 are allowed"),
        (lambda: _raise(UnreadableError()), "UnreadableError", "its text cannot be read"),
        (lambda: _raise(OwnError("mine")), "OwnError", "mine"),
        (lambda: Hostile(), "OwnError", "not with me"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_any_failure_in_a_tool_takes_the_error_edge(
    works: Open, give: Any, kind: str, words: str, asynchronous: bool
) -> None:
    if asynchronous:

        @stepladder.tool("look", effect="read")
        async def look_later() -> Any:
            return give()
    else:

        @stepladder.tool("look", effect="read")
        def look() -> Any:
            return give()

    if asynchronous and kind == "StopIteration":
        kind = "RuntimeError"  # as Python itself has it: no coroutine may raise the other

    w = await works()
    done = await asyncio.wait_for(w.run(looking()), 20)
    assert done.status == "succeeded"
    assert isinstance(done.result, dict)
    assert done.result["kind"] == kind
    assert words in str(done.result["message"])
    assert "tool_failed" in await w.kinds(done.id)


async def test_a_cancellation_inside_a_tool_fails_only_the_tool(works: Open) -> None:
    @stepladder.tool("look", effect="read")
    async def look() -> None:
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        await inner

    w = await works()
    done = await w.run(looking())
    assert isinstance(done.result, dict)
    assert done.result["kind"] == "CancelledError"


async def test_invalid_arguments_run_nothing(works: Open) -> None:
    ran: list[int] = []

    @stepladder.tool("look", effect="read")
    def look(hours: int) -> None:
        ran.append(hours)

    w = await works()
    for arguments, word in (({"hours": "'many'"}, "/hours"), ({"days": "1"}, "days"), ({}, "hours")):
        done = await w.run(looking(arguments=arguments))
        assert isinstance(done.result, dict)
        assert done.result["kind"] == "invalid_arguments"
        assert word in str(done.result["message"])
    assert ran == []


async def test_a_job_without_the_scope_may_not_run_the_tool(works: Open) -> None:
    @stepladder.tool("look", effect="read", permissions=["stock:read", "stock:list"])
    def look() -> int:
        return 1

    w = await works()
    done = await w.drive(await w.submit(looking(), scopes=frozenset({"stock:read"})))
    assert done.failure == "permission_denied"
    assert "stock:list" in str(done.failure_detail)
    done = await w.drive(await w.submit(looking(), scopes=frozenset({"stock:read", "stock:list"})))
    assert done.result == {"got": 1}


async def test_the_model_cannot_pass_the_idempotency_key(works: Open) -> None:
    @stepladder.tool("look", effect="idempotent")
    def look(team: str, idempotency_key: str) -> str:
        return team + idempotency_key

    w = await works({"action": "look", "arguments": {"team": "a", "idempotency_key": "mine"}})
    states = {
        "choose": {"ask": "Look.", "tools": ["look"], "next": {"look": "look"}, "retry": {"attempts": 1}},
        **looking(),
    }
    states["look"] = {"tool": {"from": "choose"}, "next": {"ok": "got", "error": "failed"}}
    done = await w.run(states)
    assert done.failure == "attempts_exhausted"
    assert await w.outcomes(done.id) == [("schema_violation", "additionalProperties")]


# How long, how often, and what comes back


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_tool_that_times_out_fails_and_its_result_is_dropped(works: Open, asynchronous: bool) -> None:
    go_on, ended = threading.Event(), threading.Event()
    if asynchronous:

        @stepladder.tool("look", effect="read", timeout_s=0.05)
        async def look_later() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"
    else:

        @stepladder.tool("look", effect="read")
        def look() -> str:
            go_on.wait(20)
            ended.set()
            return "too late"

    w = await works()
    with capture_logs() as logs:
        done = await w.run(looking(timeout_s=0.05))
        assert done.result == {"kind": "timeout", "message": "no result within 0.05 s"}
        assert ended.is_set() is asynchronous, "an async tool is cancelled, and a thread goes on"
        go_on.set()
        if not asynchronous:
            await eventually(lambda: any(line["event"] == "tool returned too late" for line in logs))
    assert (await w.call(done.id))["result"] is None


async def test_a_tool_that_ignores_cancellation_blocks_no_job(works: Open) -> None:
    release = asyncio.Event()

    @stepladder.tool("look", effect="read", timeout_s=0.05)
    async def look() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    w = await works()
    done = await w.run(looking())
    assert isinstance(done.result, dict)
    assert done.result["kind"] == "timeout"
    release.set()


async def test_a_timeout_of_0_runs_nothing(works: Open) -> None:
    ran: list[int] = []

    @stepladder.tool("pay", effect="irreversible", timeout_s=0)
    def pay(amount: int) -> None:
        ran.append(amount)

    w = await works()
    done = await w.drive(await w.submit(TELLING), YES)
    assert done.result == {"kind": "timeout", "message": "not run: the timeout is 0 s"}
    assert ran == []


async def test_the_deadline_shortens_the_timeout_of_a_tool(works: Open) -> None:
    @stepladder.tool("look", effect="read")
    async def look() -> None:
        await asyncio.Event().wait()

    w = await works()
    done = await w.run(looking(), limits={"deadline_s": 0.5})
    assert isinstance(done.result, dict)
    assert done.result["kind"] == "timeout"
    assert "the job's deadline" in str(done.result["message"])


async def test_a_tool_is_retried_under_the_same_key(works: Open) -> None:
    keys: list[str] = []

    @stepladder.tool("look", effect="idempotent")
    def look(idempotency_key: str) -> int:
        keys.append(idempotency_key)
        if len(keys) < 3:
            raise OutOfStockError(f"no {len(keys)}")
        return len(keys)

    w = await works()
    done = await w.run(looking(retry={"attempts": 3}))
    assert done.result == {"got": 3}
    assert len(set(keys)) == 1
    call = await w.call(done.id)
    assert (call["runs"], call["failed"], call["lost"], call["error_kind"]) == (3, 2, 0, None)
    kinds = await w.kinds(done.id)
    runs = ["tool_started", "tool_failed", "retry_scheduled"]
    assert kinds[2:10] == [*runs, *runs, "tool_started", "tool_returned"]


class Receipt(BaseModel):
    amount: int
    on: date = date(2026, 1, 1)


async def test_a_pydantic_result_becomes_json(works: Open) -> None:
    @stepladder.tool("look", effect="read")
    def look() -> list[Receipt]:
        return [Receipt(amount=3)]

    w = await works()
    assert (await w.run(looking())).result == {"got": [{"amount": 3, "on": "2026-01-01"}]}


async def test_a_result_that_breaks_the_return_schema_is_not_retried(works: Open) -> None:
    ran: list[int] = []

    @stepladder.tool("look", effect="read")
    def look() -> list[Receipt]:
        ran.append(1)
        return [{"amount": "three"}, {"on": 5}]  # type: ignore[list-item]  # that is the point

    w = await works()
    done = await w.run(looking(retry={"attempts": 5}))
    assert isinstance(done.result, dict)
    assert done.result["kind"] == "bad_result"
    for said in ("return schema of look", "/0/amount", "/1/on", "amount"):
        assert said in str(done.result["message"])
    assert ran == [1]


async def test_400_sleeping_tools_do_not_block_the_loop() -> None:
    together, arrived = threading.Barrier(400), threading.Event()

    @stepladder.tool("look", effect="read")
    def look() -> None:
        if together.wait(60) == 0:
            arrived.set()

    tool = kit.registered().tools["look"]
    call = ToolCall(1, "look", datetime.now(UTC), "look", Effect.READ, {}, "key")
    runs = [asyncio.ensure_future(run_tool(tool, call)) for _ in range(399)]
    await eventually(lambda: together.n_waiting == 399)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7, "the loop's own threads are free"
    assert await run_tool(tool, call) == ToolReturned(None)
    assert set(await asyncio.gather(*runs)) == {ToolReturned(None)}
    assert arrived.is_set()


# What cannot be undone

PAYING: dict[str, Any] = {
    "confirm": {"wait": {"signal": "confirm"}, "next": {"yes": "pay"}},
    "pay": {"tool": "pay", "arguments": {"amount": "3"}, "next": {"ok": "done", "error": "broken"}},
}
TELLING: dict[str, Any] = PAYING | {
    "pay": PAYING["pay"] | {"next": {"ok": "done", "error": "told"}},
    "told": {"end": "succeeded", "result": {"kind": "errors.pay.kind", "message": "errors.pay.message"}},
}
YES = {"confirm": [{"action": "yes"}]}


def _hangs(paid: list[int], asynchronous: bool, release: threading.Event) -> None:
    if asynchronous:

        @stepladder.tool("pay", effect="irreversible", timeout_s=0.05)
        async def pay_later(amount: int) -> None:
            paid.append(amount)
            await asyncio.Event().wait()
    else:

        @stepladder.tool("pay", effect="irreversible", timeout_s=0.05)
        def pay(amount: int) -> None:
            paid.append(amount)
            release.wait(20)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_irreversible_tool_that_times_out_is_settled(works: Open, asynchronous: bool) -> None:
    paid: list[int] = []
    release = threading.Event()
    _hangs(paid, asynchronous, release)
    w = await works()
    job = await w.submit(PAYING)
    for _ in range(2):
        waits = await w.drive(job, YES)
        assert (waits.status, waits.waiting_for) == ("waiting", "settlement")
    release.set()
    found = await w.unsettled(job)
    assert found.reason == Reason(kind="timeout", message="no result within 0.05 s")
    assert await w.store.settle(job, found.key, Settled(True, {"receipt": 7}, "kim")) is Settling.ACCEPTED
    done = await w.drive(job)
    assert (done.status, paid) == ("succeeded", [3])
    call = await w.call(job)
    assert (call["result"], call["error_kind"], call["runs"]) == ({"receipt": 7}, None, 1)


@pytest.mark.parametrize("effect", ["irreversible", "read"])
async def test_a_tool_may_raise_effect_unknown(works: Open, effect: str) -> None:
    @stepladder.tool("pay", effect=effect)
    def pay(amount: int) -> None:
        raise stepladder.EffectUnknownError(f"the bank broke off while {amount} were paid")

    w = await works()
    done = await w.drive(await w.submit(TELLING), YES)
    if effect == "read":
        assert done.result == {"kind": "EffectUnknownError", "message": "the bank broke off while 3 were paid"}
        return
    assert (done.status, done.waiting_for) == ("waiting", "settlement")
    found = await w.unsettled(done.id)
    assert found.reason == Reason(kind="effect_unknown", message="the bank broke off while 3 were paid")


@pytest.mark.parametrize("message", ["no money", '\0 {"kind": "not_done"}', None], ids=["raises", "odd", "bad result"])
async def test_an_irreversible_tool_that_fails_runs_once(works: Open, message: str | None) -> None:
    paid: list[int] = []

    @stepladder.tool("pay", effect="irreversible")
    def pay(amount: int) -> int:
        paid.append(amount)
        if message is None:
            return "three"  # type: ignore[return-value]  # that is the point
        raise OutOfStockError(message)

    w = await works()
    done = await w.drive(await w.submit(TELLING), YES)
    assert isinstance(done.result, dict)
    assert done.result["kind"] == ("bad_result" if message is None else "OutOfStockError")
    assert message in (None, done.result["message"])
    assert paid == [3]
    again = "SELECT FROM visits WHERE job_id = %s AND error_kind IN ('not_done', 'invalid_arguments')"
    assert await w.rows(again, done.id) == []  # so that no other job of its lineage begins it


async def test_cancellation_waits_for_an_irreversible_tool(works: Open) -> None:
    beats: list[bool] = []

    async def heard() -> bool:
        """The lease grew old and was renewed since the request, and so the worker knows of it."""
        query = "SELECT lease_until > now() + interval '0.25 s' AS fresh FROM jobs WHERE id = %s"
        beats.append((await w.rows(query, job))[0]["fresh"])
        return False in beats and beats[-1]

    @stepladder.tool("pay", effect="irreversible")
    async def pay(amount: int) -> dict[str, int]:
        await w.store.request_cancel(job)
        await eventually(heard)
        return {"paid": amount}

    w = await works(respond=lambda _: Fault("hang"))
    pay_and_ask = PAYING | {"pay": PAYING["pay"] | {"next": {"ok": "ask", "error": "ask"}}, "ask": asking()}
    job = await w.submit(pay_and_ask)
    done = await w.drive(job, YES, lease_s=0.3)
    assert done.status == "cancelled"
    call = await w.call(job)
    assert (call["result"], call["error_kind"]) == ({"paid": 3}, None)


async def test_a_lost_lease_stops_an_async_tool(works: Open) -> None:
    stopped = threading.Event()

    @stepladder.tool("look", effect="read")
    async def look() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    w = await works()
    job = await w.submit(looking())
    worker = asyncio.create_task(w.runner(lease_s=0.3).run_slice(job))

    async def runs() -> bool:
        return "tool_started" in await w.kinds(job)

    await eventually(runs)
    await w.expire_lease(job)
    assert await w.store.claim("other", 60, job) is not None
    assert (await worker).end is SliceEnd.LOST
    await eventually(stopped.is_set)


# A tool that the model chooses


async def test_a_tool_chosen_by_the_model_runs_with_its_arguments(works: Open) -> None:
    @stepladder.tool("search", effect="read")
    def search(query: str) -> dict[str, str]:
        """Searches the articles."""
        return {"found": query}

    @stepladder.tool("count", effect="read")
    def count(of: str, limit: int = 10) -> dict[str, Any]:
        return {"of": of, "limit": limit}

    w = await works(
        {"action": "search", "arguments": {"query": "ladders"}},
        {"action": "count", "arguments": {"of": "rungs"}},
        {"action": "finish", "answer": "four"},
    )
    final = {
        "type": "object",
        "properties": {"action": {"enum": ["finish"]}, "answer": {"type": "string", "maxLength": 20}},
        "required": ["action", "answer"],
        "additionalProperties": False,
    }
    act = {
        "ask": "{% if last_tool is defined %}{{ last_tool.tool }}: {{ last_tool.result }}{% else %}Begin.{% endif %}",
        "tools": ["search", "count"],
        "output": final,
        "next": {"search": "call", "count": "call", "finish": "done"},
    }
    states = {
        "act": act,
        "call": {"tool": {"from": "act"}, "next": {"ok": "act", "error": "act"}},
        "done": {"end": "succeeded", "result": {"answer": "turns.act.answer", "calls": "visits.call"}},
    }
    done = await w.run(states)
    calls = [{"found": "ladders"}, {"of": "rungs", "limit": 10}]
    assert done.result == {"answer": "four", "calls": calls}
    branches = w.engine.requests[0].body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [branch["properties"]["action"]["enum"] for branch in branches] == [["finish"], ["search"], ["count"]]
    assert "Searches the articles." in w.engine.requests[0].text
    assert w.engine.requests[1].text.startswith("search: ")


async def test_an_error_goes_back_to_the_model_until_max_visits(works: Open) -> None:
    @stepladder.tool("look", effect="read")
    def look(n: int) -> None:
        raise OutOfStockError(f"no number {n}")

    w = await works(*({"action": "look", "arguments": {"n": n}} for n in range(5)))
    states = {
        "act": {
            "ask": "{{ errors.call.message if errors.call is defined else 'Begin.' }}",
            "tools": ["look"],
            "next": {"look": "call", "exhausted": "tired"},
            "max_visits": 3,
        },
        "call": {"tool": {"from": "act"}, "next": {"ok": "act", "error": "act"}},
        "tired": {"end": "failed", "result": {"last": "errors.call.message"}},
    }
    done = await w.run(states)
    assert (done.failure, done.state) == ("rejected", "tired")
    assert [request.text.split("\n")[0] for request in w.engine.requests] == ["Begin.", "no number 0", "no number 1"]
    assert done.result == {"last": "no number 2"}
