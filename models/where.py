"""A filter of jobs as words: ``{"workflow": "bill", "status": ["failed"], "metadata.order": "4711"}``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from stepladder.models.listing import JobFilter
from stepladder.models.search import LONGEST
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.models.listing import Scalar
    from stepladder.schemas.jsontypes import Json

METADATA = "metadata."
WORDS: Mapping[str, Callable[[str], Any]] = {
    "status": JobStatus,
    "workflow": str,
    "outcome": Outcome,
    "failure": Failure,
    "cause": str,
    "rule": str,
    "state": str,
    "principal": str,
    "replay_of": UUID,
}
TIMES = ("created_after", "created_before")
ONCE = ("parent", "search")
KNOWN = (*WORDS, *TIMES, *ONCE, f"{METADATA}KEY")
"""Every word that a filter may have."""


class WhereError(ValueError):
    """What is wrong with a filter, for people. ``field`` is the word that it is wrong at."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def filter_of(where: Mapping[str, Json]) -> JobFilter:
    """Each field has one value or a list of them, of which any will do. Raises ``WhereError``."""
    fields: dict[str, Any] = {}
    metadata: dict[str, tuple[Scalar, ...]] = {}
    for field, given in where.items():
        values = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        if field.startswith(METADATA) and len(field) > len(METADATA):
            metadata[field.removeprefix(METADATA)] = tuple(one for value in values for one in _spelled(field, value))
        elif field in WORDS:
            fields[field] = tuple(_word(field, value) for value in values)
        elif field in TIMES:
            fields[field] = _time(field, values[-1] if values else None)
        elif field in ONCE:
            fields[field] = _once(field, values)
        else:
            raise WhereError(field, f"jobs are not found by `{field}`; they are by {', '.join(KNOWN)}")
    return JobFilter(**fields, metadata=metadata)


def _text(field: str, value: Json) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise WhereError(field, f"`{field}` takes a text, and not {json.dumps(value)[:40]}")
    return value


def _word(field: str, value: Json) -> Any:
    text = _text(field, value)
    kind = WORDS[field]
    try:
        return kind(text)
    except ValueError:
        if kind is UUID:
            message = f"`{field}`: {text[:40]!r} is no job id, such as 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
            raise WhereError(field, message) from None
        known = ", ".join(str(word) for word in kind)  # type: ignore[attr-defined] # only an enum refuses a text
        raise WhereError(field, f"`{field}` is never {text[:40]!r}; it is one of {known}") from None


def _once(field: str, values: Sequence[Json]) -> UUID | str:
    if len(values) != 1:
        raise WhereError(field, f"`{field}` takes one value, and not {len(values)}")
    if field == "search":
        if not isinstance(values[0], str) or not 0 < len(values[0]) <= LONGEST:
            raise WhereError(field, f"`search` takes a text of 1 to {LONGEST} characters")
        return values[0]
    text = _text(field, values[0])
    try:
        return UUID(text)
    except ValueError:
        message = f"`{field}`: {text[:40]!r} is no job id, such as 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
        raise WhereError(field, message) from None


def _time(field: str, value: Json) -> datetime:
    text = _text(field, value)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        message = f"`{field}`: {text[:40]!r} is no time, such as 2026-01-31T12:30:00Z"
        raise WhereError(field, message) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _spelled(field: str, value: Json) -> list[Scalar]:
    """What may stand in a job's metadata: the text itself, and the number or the truth that it spells."""
    if isinstance(value, bool | int | float):
        return [value]
    text = _text(field, value)
    if "\0" in field:
        raise WhereError(field.replace("\0", ""), "the character \\u0000 is in no text that jobs are found by")
    try:
        spelled = json.loads(text)
    except ValueError:
        return [text]
    finite = isinstance(spelled, bool | int) or (isinstance(spelled, float) and abs(spelled) < float("inf"))
    return [text, spelled] if finite else [text]
