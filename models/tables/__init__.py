"""The tables, as SQLAlchemy knows them. ``migrations`` makes them; a test holds the two to each other.

How JSON and text are kept: what a model, a tool or a user made is ``json``, which keeps every value to the letter
(``jsonb`` refuses NUL, and changes numbers and the order of keys). Their texts are JSON strings in such a column,
since ``text`` refuses NUL; ``column #>> '{}'`` reads one in SQL. Columns of type ``text`` hold words of our own, or
words of others as ``rows.plain`` leaves them.
"""

from __future__ import annotations

from stepladder.models.columns import metadata
from stepladder.models.revision import REVISION
from stepladder.models.tables.jobs import jobs
from stepladder.models.tables.orders import bulks, experiments, idempotency_keys
from stepladder.models.tables.published import output_schemas, variants, workflows
from stepladder.models.tables.servers import engine_shares, prices, principal_bounds
from stepladder.models.tables.turns import attempts, messages, turns
from stepladder.models.tables.visits import events, settlements, signals, visits

__all__ = [
    "REVISION",
    "attempts",
    "bulks",
    "engine_shares",
    "events",
    "experiments",
    "idempotency_keys",
    "jobs",
    "messages",
    "metadata",
    "output_schemas",
    "prices",
    "principal_bounds",
    "settlements",
    "signals",
    "turns",
    "variants",
    "visits",
    "workflows",
]
