"""Changed documents, which no version has: what a fork runs by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.jsontypes import Json, JsonObject


async def keep_variant(
    database: Database, name: str, base: tuple[str, int], document: Json, changes: JsonObject
) -> None:
    """Keeps a changed document of the workflow and version ``base`` once, under its hash as its ``name``.

    ``changes`` say how it came about.
    """
    variant = {"hash": name, "workflow": base[0], "version": base[1]}
    await database.write(_KEEP, variant | {"document": json_text(document), "changes": json_text(changes)})


async def find_variant(database: Database, hash: str) -> Json:  # noqa: A002 -- the word
    """The document. Raises ``LookupError`` if there is none."""
    row = await database.row(_FIND, {"hash": hash})
    if row is None:
        raise LookupError(f"the changed document {hash} of a job is not in the store")
    document: Json = row["document"]
    return document


async def replays_of(database: Database, job_id: UUID) -> tuple[UUID, ...]:
    """The jobs that were made from this one, oldest first; the newest hundred of them."""
    rows = await database.rows(_REPLAYS, {"job": job_id})
    return tuple(row["id"] for row in reversed(rows))


_REPLAYS = """
SELECT id FROM jobs WHERE replay_of = %(job)s ORDER BY created_at DESC, id DESC LIMIT 100
"""

_KEEP = """
INSERT INTO variants (hash, workflow, version, document, changes)
VALUES (%(hash)s, %(workflow)s, %(version)s, %(document)s::json, %(changes)s::json)
ON CONFLICT (hash) DO NOTHING
"""

_FIND = """
SELECT document FROM variants WHERE hash = %(hash)s
"""
