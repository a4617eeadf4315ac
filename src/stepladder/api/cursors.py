"""Cursors: a place in a list, as one opaque word that is valid only for this list and its filters."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.api.problems import Mistake, invalid
from stepladder.schemas.job_filter import Place
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEAL_BYTES = 12


def seal(body: bytes, filters: Sequence[tuple[str, str]]) -> bytes:
    """Binds a cursor to its filters. It catches mistakes; a place is not secret."""
    text = json_text(["stepladder cursor 1", sorted(filters)]).encode()
    return hashlib.sha256(text + b"\0" + body).digest()[:_SEAL_BYTES]


def encode(place: Place, filters: Sequence[tuple[str, str]]) -> str:
    """The cursor for what comes after a place."""
    body = json.dumps([place.created_at.isoformat(), place.job_id.hex]).encode()
    return base64.urlsafe_b64encode(seal(body, filters) + body).decode().rstrip("=")


def decode(cursor: str, filters: Sequence[tuple[str, str]]) -> Place:
    """The place that ``encode`` was given. Raises ``ProblemError`` for a cursor that is not from this list."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        mark, body = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        if mark != seal(body, filters):
            raise ValueError(cursor)
        at, job_id = json.loads(body)
        return Place(datetime.fromisoformat(at), UUID(job_id))
    except ValueError:
        reason = "this cursor is not from this list with these filters"
        remedy = "send it with the filters of the page that it is from, or start without a cursor"
        raise invalid("the cursor cannot be used", [Mistake(reason, parameter="cursor")], remedy) from None
