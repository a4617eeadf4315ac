"""Counts of what has happened since the first job, read again and again at the cost of what is new."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from stepladder.models import measures
from stepladder.models.measures import Closed, Ended, Judged, Observed, Took
from stepladder.models.shares import engines_used

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from decimal import Decimal

    from stepladder.models.database import Database
    from stepladder.models.shares import EngineUse

SETTLED_AFTER_S = 60.0
"""A row is written within this time of the moment that it bears, by whichever clock: older moments get no more rows."""

Numbers: TypeAlias = "Mapping[str, int | float | Decimal]"
"""What is counted of one kind, by the columns of the statements in ``measures``."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Tally:
    """``live`` counts jobs that have not ended by status. ``due`` jobs wait for a worker, the first for ``age_s``."""

    judged: Mapping[Judged, Numbers]
    closed: Mapping[Closed, Numbers]
    observed: Mapping[Observed, Numbers]
    took: Mapping[Took, Numbers]
    ended: Mapping[Ended, Numbers]
    live: Mapping[str, int]
    in_hand: int
    in_hand_of_workflow: Mapping[str, int]
    in_hand_of_principal: Mapping[str, int]
    engines: Sequence[EngineUse]
    due: int
    age_s: float


class Tallies:
    """Keeps what is settled, and asks an opened ``Database`` for the rest. One reading at a time.

    The first reading counts every row, by indexes that are as old as the rows are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since: datetime | None = None
        self._judged = _Kept(Judged, measures.JUDGED)
        self._closed = _Kept(Closed, measures.CLOSED)
        self._observed = _Kept(Observed, measures.OBSERVED)
        self._took = _Kept(Took, measures.TOOK)
        self._ended = _Kept(Ended, measures.ENDED)

    async def read(self) -> Tally:
        """The counts now. Raises ``UnreachableError`` when the database breaks."""
        edge = await self._database.row(_EDGE, {"settled_after_s": SETTLED_AFTER_S})
        if edge is None:
            raise LookupError("a SELECT of one row gave none")
        span = {"since": self._since, "edge": edge["at"], "workflow": None, "experiments": True}
        span |= {"bounds": list(measures.SECONDS)}
        kinds = (self._judged, self._closed, self._observed, self._took, self._ended)
        found = [await self._database.rows(kept.statement, span) for kept in kinds]
        live = await self._database.rows(_LIVE, {})
        held = await self._database.rows(_HELD, {})
        engines = await engines_used(self._database)
        queue = await self._database.row(_QUEUE, {}) or {"due": 0, "age_s": 0.0}
        self._since = edge["at"]
        judged, closed, observed, took, ended = found
        return Tally(
            judged=self._judged.add(judged),
            closed=self._closed.add(closed),
            observed=self._observed.add(named(observed)),
            took=self._took.add(took),
            ended=self._ended.add(ended),
            live={row["status"]: row["n"] for row in live},
            in_hand=sum(row["n"] for row in held),
            in_hand_of_workflow=_summed(held, "workflow"),
            in_hand_of_principal=_summed(held, "principal"),
            engines=engines,
            due=queue["due"],
            age_s=queue["age_s"],
        )


def _summed(held: Iterable[Mapping[str, Any]], column: str) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for row in held:
        sums[row[column]] += row["n"]
    return sums


class _Kept(Generic[K]):
    """The settled numbers of each kind, ``key`` being the class of kinds."""

    def __init__(self, key: type[K], statement: str) -> None:
        self.statement = statement
        self._key = key
        self._names = [field.name for field in fields(key)]  # type: ignore[arg-type]  # K is one of the dataclasses above
        self._settled: dict[K, Counter[str]] = {}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> Mapping[K, Numbers]:
        """Keeps the rows that are settled. Gives all numbers, those of the others among them."""
        fresh: dict[K, Counter[str]] = {}
        for row in rows:
            key = self._key(*(row[name] for name in self._names))
            numbers = {name: row[name] for name in row if name not in (*self._names, "settled")}
            (self._settled if row["settled"] else fresh).setdefault(key, Counter()).update(numbers)
        return {
            key: self._settled.get(key, Counter()) + fresh.get(key, Counter())
            for key in dict.fromkeys((*self._settled, *fresh))
        }


def named(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ``measures.OBSERVED``, with each rule's id as a text."""
    return [{**row, "rule": json.loads(row["rule"])} for row in rows]


_EDGE = """
SELECT now() - make_interval(secs => %(settled_after_s)s::float8) AS at
"""

_LIVE = """
SELECT
    CASE WHEN paused_at IS NOT NULL THEN 'paused' ELSE status END AS status, count(*) AS n
FROM jobs WHERE finished_at IS NULL GROUP BY 1
"""

_HELD = """
SELECT workflow, principal, count(*) AS n FROM jobs
WHERE lease_owner IS NOT NULL AND lease_until > now() GROUP BY workflow, principal
"""

_QUEUE = """
SELECT count(*) AS due, COALESCE(EXTRACT(epoch FROM now() - min(wake_at)), 0)::float8 AS age_s
FROM jobs
WHERE wake_at <= now()
    AND paused_at IS NULL
    AND held_at IS NULL
    AND status IN ('queued', 'running', 'waiting')
    AND (lease_until IS NULL OR lease_until <= now())
"""
