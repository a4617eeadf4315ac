"""A filter of jobs as text: ``{"workflow": "bill", "status": ["failed"], "metadata.order": "4711"}``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from stepladder.queries.search import LONGEST
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.job_filter import JobFilter
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.schemas.job_filter import Scalar
    from stepladder.schemas.jsontypes import Json

METADATA = "metadata."


class WhereError(ValueError):
    """What is wrong with a filter, for people. ``field`` is the field that it is wrong at."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _searched(text: str) -> str:
    if not 0 < len(text) <= LONGEST:
        raise ValueError
    return text


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
"""Fields of which any of several values will do."""

ONCE: Mapping[str, Callable[[str], Any]] = {
    "created_after": _time,
    "created_before": _time,
    "parent": UUID,
    "search": _searched,
}
KNOWN = (*WORDS, *ONCE, f"{METADATA}KEY")
EXPECTED: Mapping[Callable[[str], Any], str] = {
    UUID: "a job id such as 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b",
    _time: "a time such as 2026-01-31T12:30:00Z; a + in a query is written %2B",
    _searched: f"a text of 1 to {LONGEST} characters",
    JobStatus: f"one of {', '.join(JobStatus)}",
    Outcome: f"one of {', '.join(Outcome)}",
    Failure: f"one of {', '.join(Failure)}",
}


def filter_of(where: Mapping[str, Json]) -> JobFilter:
    """Each field has one value, or a list of values of which any will do. Raises ``WhereError``."""
    fields: dict[str, Any] = {}
    metadata: dict[str, tuple[Scalar, ...]] = {}
    for field, given in where.items():
        values = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        if field.startswith(METADATA) and len(field) > len(METADATA):
            metadata[field.removeprefix(METADATA)] = tuple(one for value in values for one in _scalars(field, value))
        elif field in WORDS:
            fields[field] = tuple(_read(field, value, WORDS[field]) for value in values)
        elif field not in ONCE:
            raise WhereError(field, f"`{field}` is not a filter; known are {', '.join(KNOWN)}")
        elif len(values) != 1:
            raise WhereError(field, f"`{field}` takes one value, not {len(values)}")
        else:
            fields[field] = _read(field, values[0], ONCE[field])
    return JobFilter(**fields, metadata=metadata)


def _read(field: str, value: Json, read: Callable[[str], Any]) -> Any:
    text = _text(field, value)
    try:
        return read(text)
    except ValueError:
        raise WhereError(field, f"`{field}` cannot be {text[:40]!r}; write {EXPECTED[read]}") from None


def _text(field: str, value: Json) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise WhereError(field, f"`{field}` takes a text without \\u0000, not {json.dumps(value)[:40]}")
    return value


def _scalars(field: str, value: Json) -> list[Scalar]:
    """What a job's metadata may hold: the text itself, and the number or truth value that it spells."""
    if isinstance(value, bool | int | float):
        return [value]
    text = _text(field, value)
    if "\0" in field:
        raise WhereError(field.replace("\0", ""), "the character \\u0000 cannot be in metadata")
    try:
        spelled = json.loads(text)
    except ValueError:
        return [text]
    if isinstance(spelled, bool | int) or (isinstance(spelled, float) and math.isfinite(spelled)):
        return [text, spelled]
    return [text]
