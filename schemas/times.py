"""Moments as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since_of(text: str, now: datetime) -> datetime | None:
    """``24h``, ``90m`` or ``7d`` before ``now``, or a time by RFC 3339, which without a zone is UTC; in UTC.

    None for anything else, and for times before year 1.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return (now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])).astimezone(UTC)
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
