"""Two look-ups on one small table. Both only read, so the runner may call them again after a crash."""

from __future__ import annotations

import stepladder

USAGE: dict[str, tuple[int, str]] = {
    "search": (12, "silver"),
    "maps": (20, "gold"),
    "mail": (8, "bronze"),
    "video": (24, "gold"),
}
"""Team to hours used this month and the plan it is on."""

RATES: dict[str, int] = {"bronze": 2, "silver": 3, "gold": 5}
"""Plan to dollars an hour."""


@stepladder.tool("usage_query", effect="read", permissions=["usage:read"])
def usage_query(team: str) -> dict[str, int | str]:
    """Return the hours that a team used this month and its plan. An unknown team is a `KeyError`."""
    hours, plan = USAGE[team]
    return {"hours": hours, "plan": plan}


@stepladder.tool("rate_query", effect="read", permissions=["usage:read"])
def rate_query(plan: str) -> dict[str, int]:
    """Return a plan's rate in dollars an hour. An unknown plan is a `KeyError`."""
    return {"rate": RATES[plan]}
