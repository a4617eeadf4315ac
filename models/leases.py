"""Leases renewed over a connection of their own, which no other statement delays and no event loop serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from stepladder.models import hot
from stepladder.models.database import SETTINGS, reaching
from stepladder.models.records import LeaseStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.models.records import Claim

BATCH = 500
"""Leases renewed by one statement: a commit for one of these jobs waits for it, some 5 ms."""

ANSWER_WITHIN_S = 2
"""How long a server that is gone holds up a heartbeat."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """A lease that is held. ``in_time`` is false where another transaction had locked the job's row: try again soon."""

    status: LeaseStatus
    in_time: bool


class LeaseConnection:
    """Use it in one thread. It connects when it is first used, and again after an error."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def renew(self, claims: Sequence[Claim], lease_s: float) -> dict[UUID, Renewed]:
        """Renews leases, for ``lease_s`` seconds from now. A job that is missing is lost.

        Raises ``UnreachableError`` when the connection breaks.
        """
        found: dict[UUID, Renewed] = {}
        try:
            with reaching(self._url):
                for batch in (claims[at : at + BATCH] for at in range(0, len(claims), BATCH)):
                    jobs, fences = [claim.job.id for claim in batch], [claim.fence for claim in batch]
                    held = {"jobs": jobs, "fences": fences, "lease_s": lease_s}
                    for row in self._connected().execute(hot.HEARTBEATS, held):
                        status = LeaseStatus.CANCELLING if row["cancel_requested"] else LeaseStatus.HELD
                        found[row["id"]] = Renewed(status, row["renewed"])
        except BaseException:
            self.close()
            raise
        return found

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> psycopg.Connection[dict[str, Any]]:
        if self._connection is None:
            within = {"connect_timeout": ANSWER_WITHIN_S, "tcp_user_timeout": ANSWER_WITHIN_S * 1000}
            self._connection = psycopg.connect(self._url, autocommit=True, row_factory=dict_row, **SETTINGS | within)
        return self._connection
