"""The ticket system of the example. A ticket follows from the report's number, so that asking twice opens one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

import stepladder


@stepladder.tool("open_ticket", effect="idempotent", permissions=["tickets:write"])
def open_ticket(
    team: Literal["login", "payments", "search"],
    number: Annotated[int, Field(ge=1, le=9999)],
    title: Annotated[str, Field(max_length=60)],
    severity: Literal["low", "medium", "high"],
) -> dict[str, str | int]:
    """Open a ticket with a team. The same report number gives the same ticket again."""
    return {"ticket": 4000 + number, "team": team, "title": title, "severity": severity}
