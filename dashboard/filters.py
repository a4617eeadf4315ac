"""The filters of the list of jobs, which live in its URL in the same words as in the API's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from stepladder.models.listing import JobFilter
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.models.listing import Scalar

Word = TypeVar("Word", bound=StrEnum)
Pairs = list[tuple[str, str]]

METADATA = "metadata."
NAMES = ("status", "workflow", "outcome", "failure", "created_after", "created_before")
LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Filters:
    """What stands in the URL: ``pairs`` without what is empty, the filter they make, and what is wrong with some."""

    pairs: tuple[tuple[str, str], ...]
    wanted: JobFilter
    mistakes: tuple[str, ...] = ()

    def values(self, name: str) -> list[str]:
        return [text for key, text in self.pairs if key == name]

    def value(self, name: str) -> str:
        return next(iter(self.values(name)), "")

    @property
    def metadata(self) -> str:
        """As it is typed into the form."""
        found = [f"{key.removeprefix(METADATA)}={text}" for key, text in self.pairs if key.startswith(METADATA)]
        return " ".join(found)

    @property
    def described(self) -> list[str]:
        return [f"{key.replace('_', ' ')} {text.replace('_', ' ')}" for key, text in self.pairs]

    def url(self, *more: tuple[str, str]) -> str:
        pairs = [*self.pairs, *more]
        return f"/?{urlencode(pairs)}" if pairs else "/"


def canonical(items: Sequence[tuple[str, str]]) -> Pairs | None:
    """The pairs as they should stand in the URL, or None if they do. A form also sends what was left empty.

    The form's field ``metadata`` holds ``KEY=VALUE``, once or several times with spaces between.
    """
    pairs: Pairs = []
    for name, text in items:
        if name == "metadata":
            found = [word.partition("=") for word in text.split()]
            pairs += [(METADATA + key, value) for key, sign, value in found if key and sign]
        elif text.strip():
            pairs.append((name, text.strip()))
    return None if pairs == list(items) else pairs


@dataclass(slots=True)
class _Reader:
    """Reads words one by one, and keeps what is wrong with some of them."""

    mistakes: list[str] = field(default_factory=list)

    def words(self, kind: type[Word], name: str, texts: list[str]) -> tuple[Word, ...]:
        found = []
        for text in texts:
            if text in set(kind):
                found.append(kind(text))
            else:
                self.mistakes.append(f"{text[:40]!r} is no {name}; choose one of the list.")
        return tuple(found)

    def time(self, name: str, text: str) -> datetime | None:
        if not text:
            return None
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            self.mistakes.append(f"{text[:40]!r} in {name} is no time; write it as 2026-01-31T12:30.")
            return None
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def read(items: Sequence[tuple[str, str]]) -> Filters:
    """The filters of a URL. What is wrong is told and left out."""
    known = [(name, text) for name, text in items if name in NAMES or name.startswith(METADATA)]
    reader = _Reader()
    pairs = [(name, text) for name, text in known if "\0" not in name + text and len(text) <= LONGEST]
    if len(pairs) < len(known):
        reader.mistakes.append("One of the values cannot be looked for; it is too long, or not text.")

    def texts(name: str) -> list[str]:
        return [text for key, text in pairs if key == name]

    metadata: dict[str, list[Scalar]] = {}
    for name, text in pairs:
        if name.startswith(METADATA):
            metadata.setdefault(name.removeprefix(METADATA), []).extend(_spelled(text))
    wanted = JobFilter(
        status=reader.words(JobStatus, "status", texts("status")),
        workflow=tuple(texts("workflow")),
        outcome=reader.words(Outcome, "outcome", texts("outcome")),
        failure=reader.words(Failure, "failure", texts("failure")),
        created_after=reader.time("created after", "".join(texts("created_after")[:1])),
        created_before=reader.time("created before", "".join(texts("created_before")[:1])),
        metadata={name: tuple(values) for name, values in metadata.items()},
    )
    return Filters(tuple(pairs), wanted, tuple(reader.mistakes))


def _spelled(text: str) -> list[Scalar]:
    """The text itself, and the number or the truth that it spells."""
    parsed = parse(text.encode("utf-8", "replace"))
    if isinstance(parsed, Parsed) and isinstance(parsed.value, bool | int | float):
        return [text, parsed.value]
    return [text]
