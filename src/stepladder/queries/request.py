"""The request of an attempt as it was sent, rebuilt from what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.workflows.job import Attempt, Message, Turn
from stepladder.workflows.request import rebuilt

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.jsontypes import Json


@dataclass(frozen=True, slots=True)
class SentRequest:
    """``body`` is that of ``POST /chat/completions``; ``engine.wire.encode`` makes the very bytes of it.

    ``request_id`` went along as ``X-Request-Id``.
    """

    body: dict[str, Json]
    request_id: str


async def read_request(database: Database, attempt_id: UUID) -> SentRequest | None:
    """None if there is no such attempt. Raises ``LookupError`` if its schema is not in the store.

    Earlier messages are in the transcript, which is append-only, and which retention leaves alone.
    """
    row = await database.row(_REQUEST, {"attempt": attempt_id})
    if row is None:
        return None
    if not row["schema_kept"]:
        raise LookupError(f"the schema {row['schema_hash']} of attempt {attempt_id} is not in the store")
    messages = await database.rows(_MESSAGES, {"job": row["job_id"], "most": row["history_to"]})
    transcript = [Message(one["ordinal"], one["turn"], one["role"], one["content"]) for one in messages]
    names = ("turn", "ordinal", "max_completion_tokens", "sampling", "note", "history_from", "history_to")
    attempt = Attempt(**{name: row[name] for name in names})
    turn = Turn(
        visit=row["visit"],
        state=row["state"],
        opened_at=row["opened_at"],
        ordinal=row["turn"],
        question=row["question"],
        schema_hash=row["schema_hash"],
        attempts=(attempt,),
    )
    body = rebuilt(row["document"], row["schema"], row["model"], transcript, turn, attempt)
    return SentRequest(body, row["request_id"])


_REQUEST = """
SELECT
    attempts.job_id, attempts.turn, attempts.ordinal, attempts.history_from, attempts.history_to, attempts.note,
    attempts.max_completion_tokens, attempts.sampling, attempts.model, attempts.request_id,
    turns.visit, turns.state, turns.question, turns.opened_at, turns.schema_hash,
    output_schemas.schema, output_schemas.hash IS NOT NULL AS schema_kept,
    COALESCE(variants.document, workflows.document) AS document
FROM attempts
    JOIN turns ON turns.job_id = attempts.job_id AND turns.ordinal = attempts.turn
    JOIN jobs ON jobs.id = attempts.job_id
    JOIN workflows ON workflows.name = jobs.workflow AND workflows.version = jobs.version
    LEFT JOIN variants ON variants.hash = jobs.variant
    LEFT JOIN output_schemas ON output_schemas.hash = turns.schema_hash
WHERE attempts.id = %(attempt)s
"""

_MESSAGES = """
SELECT ordinal, turn, role, content FROM messages
WHERE job_id = %(job)s AND (turn = 0 OR ordinal <= %(most)s) ORDER BY ordinal
"""
