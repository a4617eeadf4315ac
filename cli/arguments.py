"""Reading what was typed: JSON, files of it, and ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.schemas.errors import BadInputError
from stepladder.validation.parse import NotJson, parse
from stepladder.wiring.app import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json


def parse_json(text: str, flag: str) -> Json:
    """``JSON`` or ``@FILE``. Raises ``BadInputError`` naming the flag."""
    content = read_text(Path(text[1:])) if text.startswith("@") else text
    parsed = parse(content.encode("utf-8", "surrogateescape"))
    if isinstance(parsed, NotJson):
        where = f"the file {text[1:]}" if text.startswith("@") else flag
        message = f"{where} holds no JSON: {parsed.reason} (at byte {parsed.offset})"
        raise BadInputError(message, remedy=f'write {flag} \'{{"name": "value"}}\', or {flag} @FILE')
    return parsed.value


def parse_signals(flags: Sequence[str]) -> dict[str, list[Json]]:
    """``NAME=JSON`` each; several for one name are given in their order."""
    answers: dict[str, list[Json]] = {}
    for flag in flags:
        name, equals, text = flag.partition("=")
        if not equals:
            message = f"--signal {flag!r} names no payload"
            raise BadInputError(message, remedy='write --signal NAME=JSON, e.g. approval=\'{"action": "approve"}\'')
        answers.setdefault(name, []).append(parse_json(text, "--signal"))
    return answers


def parse_job_id(text: str) -> UUID:
    """Raises ``BadInputError`` for what is no id."""
    try:
        return UUID(text)
    except ValueError:
        remedy = "ids look like 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
        raise BadInputError(f"{text!r} is no job id", remedy=remedy) from None
