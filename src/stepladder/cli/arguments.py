"""Parsing what options hold: JSON, files of it, signals, changes and filters; and the error for a refused replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.finding import BadDocumentError
from stepladder.validation.parse import NotJson, parse
from stepladder.wiring.files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.replay import Refused

WHERE_EXAMPLES = "write --where status=failed, --where workflow=NAME or --where metadata.KEY=VALUE"


def parse_json(text: str, flag: str) -> Json:
    """``JSON`` or ``@FILE``. Raises ``BadInputError`` naming the flag."""
    content = read_text(Path(text[1:])) if text.startswith("@") else text
    parsed = parse(content.encode("utf-8", "surrogateescape"))
    if isinstance(parsed, NotJson):
        where = f"the file {text[1:]}" if text.startswith("@") else flag
        reason = parsed.reason.replace("the answer", "it")  # the parser's messages are meant for a model
        message = f"{where} cannot be read as JSON: {reason} (at byte {parsed.offset})"
        raise BadInputError(message, remedy=f'write {flag} \'{{"name": "value"}}\', or {flag} @FILE')
    return parsed.value


def parse_signals(flags: Sequence[str]) -> dict[str, list[Json]]:
    """``NAME=JSON`` each; several payloads for one name keep their order."""
    answers: dict[str, list[Json]] = {}
    for flag in flags:
        name, equals, text = flag.partition("=")
        if not equals:
            message = f"--signal {flag!r} has no payload"
            raise BadInputError(message, remedy='write --signal NAME=JSON, e.g. approval=\'{"action": "approve"}\'')
        answers.setdefault(name, []).append(parse_json(text, "--signal"))
    return answers


def parse_pairs(flags: Sequence[str], flag: str) -> dict[str, str]:
    """``NAME=TEXT`` each. Raises ``BadInputError`` for a missing or repeated name."""
    pairs: dict[str, str] = {}
    for text in flags:
        name, equals, value = text.partition("=")
        if not equals or not name or name in pairs:
            what = "is given twice" if name in pairs else "is not NAME=VALUE"
            raise BadInputError(f"{flag} {text!r} {what}", remedy=f"write {flag} NAME=VALUE, once for each name")
        pairs[name] = value
    return pairs


def parse_changes(flags: Sequence[str]) -> dict[str, Json]:
    """``PATH=VALUE`` each. ``@FILE`` is replaced by the file's text; what is not JSON is text."""
    changes: dict[str, Json] = {}
    for path, text in parse_pairs(flags, "--set").items():
        content = read_text(Path(text[1:])) if text.startswith("@") else text
        parsed = parse(content.encode("utf-8", "surrogateescape"))
        changes[path] = content if isinstance(parsed, NotJson) else parsed.value
    return changes


def parse_where(flags: Sequence[str]) -> dict[str, Json]:
    """``KEY=VALUE`` each, named as in the API's filters; a repeated key matches any of its values."""
    where: dict[str, list[Json]] = {}
    for flag in flags:
        key, equals, value = flag.partition("=")
        if not equals or not key:
            raise BadInputError(f"--where {flag!r} is not KEY=VALUE", remedy=WHERE_EXAMPLES)
        where.setdefault(key, []).append(value)
    return {**where}


def parse_filter(where: Mapping[str, Json]) -> JobFilter:
    """The filter that ``--where`` describes. Raises ``BadInputError``."""
    from stepladder.queries.where import WhereError, filter_of

    try:
        return filter_of(where)
    except WhereError as error:
        raise BadInputError(f"--where: {error}", remedy=WHERE_EXAMPLES) from None


def refusal(refused: Refused) -> BadInputError:
    """The error for a replay or an experiment that is refused."""
    if refused.findings:
        return BadDocumentError("the changed document", refused.findings)
    return BadInputError(refused.reason, remedy=refused.remedy)
