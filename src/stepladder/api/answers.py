"""Answers in JSON that is exact: what the store holds comes out as it went in."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from stepladder.schemas.jsontext import json_text


class JsonAnswer(JSONResponse):
    """A model, or anything else that ``json_text`` writes."""

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()
