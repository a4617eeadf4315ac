"""PostgreSQL's time in a worker, whose own clock may be wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def steady() -> datetime:
    """A clock that no one sets; only the difference of two of its times means anything."""
    return _EPOCH + timedelta(seconds=time.monotonic())


class Clock:
    """The database's time as it was last read, moved on by ``local``, of which only differences count."""

    def __init__(self, local: Callable[[], datetime] = steady) -> None:
        self._local = local
        self._ahead = timedelta()

    def set(self, read: datetime, ago_s: float) -> None:
        """``read`` was the database's time ``ago_s`` seconds ago."""
        self._ahead = read + timedelta(seconds=ago_s) - self._local()

    def now(self) -> datetime:
        return self._local() + self._ahead
