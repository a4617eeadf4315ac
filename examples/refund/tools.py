"""A look-up, and a payment that cannot be undone. The ledger takes the place of a bank."""

from __future__ import annotations

import stepladder

ORDERS: dict[str, tuple[str, int, int]] = {
    "A-1001": ("a kettle", 3490, 6),
    "A-1002": ("a lamp", 5900, 41),
}
"""Order to item, cents paid and days since."""

LEDGER: dict[str, int] = {}
"""Idempotency key to cents paid back."""


@stepladder.tool("find_order", effect="read", permissions=["orders:read"])
def find_order(order: str) -> dict[str, str | int]:
    """Find what an order was for. An unknown order is a `LookupError`."""
    if order not in ORDERS:
        raise LookupError(f"there is no order {order}")
    item, cents, days_ago = ORDERS[order]
    return {"item": item, "cents": cents, "days_ago": days_ago}


@stepladder.tool("pay_refund", effect="irreversible", permissions=["refunds:pay"])
def pay_refund(order: str, cents: int, idempotency_key: str) -> dict[str, str]:
    """Pay money back. It runs at most once: after a crash during it, a person settles what happened."""
    LEDGER[idempotency_key] = cents
    return {"receipt": f"R-{order}-{cents}"}
