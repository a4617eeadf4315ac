"""The filters of the list of jobs, which live in its URL in the same words as in the API's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from stepladder.models.where import METADATA, ONCE, WORDS, WhereError, filter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.models.listing import JobFilter

Pairs = list[tuple[str, str]]

NAMES = (*WORDS, *ONCE)
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

    @property
    def uncommon(self) -> bool:
        """Whether there is a filter that the form keeps folded away."""
        return any(key in ("cause", "rule", "state", "principal", "parent", "replay_of") for key, _ in self.pairs)

    def url(self, *more: tuple[str, str]) -> str:
        pairs = [*self.pairs, *more]
        return f"/jobs?{urlencode(pairs)}" if pairs else "/jobs"


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


def read(items: Sequence[tuple[str, str]]) -> Filters:
    """The filters of a URL. What is wrong is told and left out."""
    known = [(name, text) for name, text in items if name in NAMES or name.startswith(METADATA)]
    pairs = [(name, text) for name, text in known if "\0" not in name + text and len(text) <= LONGEST]
    mistakes = []
    if len(pairs) < len(known):
        mistakes.append("One of the values cannot be looked for; it is too long, or not text.")
    where: dict[str, list[str]] = {}
    for name, text in pairs:
        where.setdefault(name, []).append(text)
    for name, texts in list(where.items()):
        try:
            filter_of({name: texts})
        except WhereError as error:
            mistakes.append(f"{error}.")
            del where[name]
    return Filters(tuple(pairs), filter_of(where), tuple(mistakes))
