"""Reading what was typed: JSON, files of it, filters and ids; and saying why a replay is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.finding import BadDocumentError
from stepladder.validation.parse import NotJson, parse
from stepladder.wiring.files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.models.listing import JobFilter
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.replay import Refused


def parse_json(text: str, flag: str) -> Json:
    """``JSON`` or ``@FILE``. Raises ``BadInputError`` naming the flag."""
    content = read_text(Path(text[1:])) if text.startswith("@") else text
    parsed = parse(content.encode("utf-8", "surrogateescape"))
    if isinstance(parsed, NotJson):
        where = f"the file {text[1:]}" if text.startswith("@") else flag
        reason = parsed.reason.replace("the answer", "it")  # the ladder's words are meant for a model
        message = f"{where} cannot be read as JSON: {reason} (at byte {parsed.offset})"
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


def parse_pairs(flags: Sequence[str], flag: str) -> dict[str, str]:
    """``NAME=TEXT`` each. Raises ``BadInputError`` for one without a name, and for a name given twice."""
    pairs: dict[str, str] = {}
    for text in flags:
        name, equals, value = text.partition("=")
        if not equals or not name or name in pairs:
            what = "is given twice" if name in pairs else "is no NAME=VALUE"
            raise BadInputError(f"{flag} {text!r} {what}", remedy=f"write {flag} NAME=VALUE, once for each name")
        pairs[name] = value
    return pairs


def parse_changes(flags: Sequence[str]) -> dict[str, Json]:
    """``PATH=VALUE`` each: a value that is JSON is read as JSON, ``@FILE`` is a file's text, the rest is text."""
    changes: dict[str, Json] = {}
    for path, text in parse_pairs(flags, "--set").items():
        content = read_text(Path(text[1:])) if text.startswith("@") else text
        parsed = parse(content.encode("utf-8", "surrogateescape"))
        changes[path] = content if isinstance(parsed, NotJson) else parsed.value
    return changes


def parse_where(flags: Sequence[str]) -> dict[str, Json]:
    """``KEY=VALUE`` each, by the words of the API's filters; a key that is repeated takes any of its values."""
    where: dict[str, list[Json]] = {}
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not equals or not key:
            remedy = "write --where status=failed, --where workflow=NAME or --where metadata.KEY=VALUE"
            raise BadInputError(f"--where {flag!r} is no KEY=VALUE", remedy=remedy)
        where.setdefault(key, []).append(value)
    return {**where}


def parse_filter(where: Mapping[str, Json]) -> JobFilter:
    """The filter of ``parse_where``. Raises ``BadInputError``."""
    from stepladder.models.where import WhereError, filter_of

    try:
        return filter_of(where)
    except WhereError as error:
        raise BadInputError(f"--where: {error}", remedy="write --where status=failed --where workflow=NAME") from None


def refusal(refused: Refused) -> BadInputError:
    """Why a replay or an experiment cannot be, as a command says it."""
    if refused.findings:
        return BadDocumentError("the changed document", refused.findings)
    return BadInputError(refused.reason, remedy=refused.remedy)


def parse_time(text: str | None, flag: str) -> datetime | None:
    """RFC 3339; a time without a zone is UTC. Raises ``BadInputError`` naming the flag."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        remedy = f"write {flag} 2026-01-31 or {flag} 2026-01-31T12:30:00Z"
        raise BadInputError(f"{flag}: {text!r} is no time", remedy=remedy) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def parse_job_id(text: str) -> UUID:
    """Raises ``BadInputError`` for what is no id."""
    try:
        return UUID(text)
    except ValueError:
        remedy = "ids look like 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
        raise BadInputError(f"{text!r} is no job id", remedy=remedy) from None
