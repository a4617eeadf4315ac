"""Answers in JSON, to the letter: what the store holds comes out as it went in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from stepladder.models.rows import json_text

if TYPE_CHECKING:
    from datetime import datetime


class JsonAnswer(JSONResponse):
    """JSON as UTF-8. Half a character, which UTF-8 has not, is written as its escape."""

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()


def moment(at: datetime | None) -> str | None:
    """A time in UTC, as RFC 3339."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")
