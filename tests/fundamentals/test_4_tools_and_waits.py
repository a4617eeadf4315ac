"""Chapter 4. Tools declare their effect; one that cannot be undone stands behind a person's word."""

from __future__ import annotations

import pytest

from stepladder import BadDocumentError, tool
from stepladder.testing import ScriptedEngine, run

ORDERS = {"A-1": 30}
paid: list[tuple[str, int, str]] = []


@tool("fundamentals.find_order", effect="read")
def find_order(order: str) -> dict[str, int]:
    return {"amount": ORDERS[order]}


@tool("fundamentals.pay_back", effect="irreversible")
def pay_back(order: str, amount: int, idempotency_key: str) -> dict[str, bool]:
    paid.append((order, amount, idempotency_key))
    return {"paid": True}


REFUND = """
name: refund
version: 1
input: {type: object, properties: {order: {type: string, maxLength: 20}}, required: [order]}
start: find
states:
  find:
    tool: fundamentals.find_order
    arguments: {order: "input.order"}
    effect: read
    next: {ok: decide, error: unknown}
  decide:
    ask: "Order {{ input.order }} cost {{ tools.find.amount }}. Refund it?"
    output: {type: object, properties: {action: {enum: [refund, refuse]}}, required: [action]}
    next: {refund: confirm, refuse: refused}
  confirm:
    wait: {signal: approval, show: {amount: "tools.find.amount"}, timeout_s: 3600}
    next: {approve: pay, reject: refused, timeout: refused}
  pay:
    tool: fundamentals.pay_back
    arguments: {order: "input.order", amount: "tools.find.amount"}
    effect: irreversible
    next: {ok: done}
  done: {end: succeeded, result: {paid: "tools.pay.paid"}}
  refused: {end: failed}
  unknown: {end: failed, result: {why: "errors.find.message"}}
"""


async def test_a_job_waits_for_a_person_and_goes_on_by_the_signal(database_url: str) -> None:
    paid.clear()
    with ScriptedEngine([{"action": "refund"}]) as engine:
        ran = await run(
            REFUND,
            {"order": "A-1"},
            engine_url=engine.url,
            database_url=database_url,
            signals={"approval": [{"action": "approve"}]},
        )
    assert ran.job.status == "succeeded"
    assert [(order, amount) for order, amount, _ in paid] == [("A-1", 30)]


async def test_without_the_signal_it_waits_and_nothing_is_paid(database_url: str) -> None:
    paid.clear()
    with ScriptedEngine([{"action": "refund"}]) as engine:
        ran = await run(REFUND, {"order": "A-1"}, engine_url=engine.url, database_url=database_url)
    assert (ran.job.status, ran.job.waiting_for) == ("waiting", "approval")
    assert paid == []


async def test_a_tool_that_raises_gives_an_error_that_the_machine_can_route(database_url: str) -> None:
    with ScriptedEngine() as engine:
        ran = await run(REFUND, {"order": "B-2"}, engine_url=engine.url, database_url=database_url)
        assert engine.requests == []
    assert (ran.job.failure, ran.job.result) == ("rejected", {"why": "'B-2'"})


async def test_an_unconfirmed_way_to_an_irreversible_tool_is_refused_at_once(database_url: str) -> None:
    hasty = REFUND.replace("refund: confirm", "refund: pay")
    with pytest.raises(BadDocumentError, match="irreversible"):
        await run(hasty, {"order": "A-1"}, engine_url="http://127.0.0.1:1/v1", database_url=database_url)
