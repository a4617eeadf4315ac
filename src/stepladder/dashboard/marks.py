"""Texts with their failing places marked: pieces that a page shows one after the other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.jsontext import json_text
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.pointer import pointer
from stepladder.validation.parse import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepladder.schemas.jsontypes import Json

SHORT = 60
"""Characters up to which JSON stays on one line."""

AROUND = 160
"""Characters before and behind a mark that an excerpt shows."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text, and what is wrong with it, where something is. A mark without text stands between two characters."""

    text: str
    mark: str | None = None


def pretty(value: Json) -> str:
    """JSON over several lines where one line would be long."""
    short = json_text(value)
    return short if len(short) <= SHORT else json.dumps(json.loads(short), ensure_ascii=False, indent=2)


def marked_json(value: Json, wrong: Sequence[tuple[str, str]]) -> list[Piece]:
    """JSON over several lines where one would be long, with a mark at each pointer that it is ``wrong`` at.

    What a pointer names and the value has not is looked for one step up; the whole value is never marked.
    """
    if not any(at for at, _ in wrong):
        return [Piece(pretty(value))]
    writer = _Writer(None if len(json_text(value)) <= SHORT else 2)
    writer.write(value, ())
    spans = ((_place(writer.places, at), why) for at, why in wrong)
    return _cut("".join(writer.parts), [(span, why) for span, why in spans if span is not None])


def marked_text(text: str, at: int, why: str) -> list[Piece]:
    """The text with one character marked, or its end."""
    return _cut(text, [((min(at, len(text)), min(at + 1, len(text))), why)])


def offset_of(content: bytes, outcome: Outcome | None) -> tuple[int, str] | None:
    """The character at which an answer stopped being what was asked for, and why, where one can be named."""
    if outcome is Outcome.TRUNCATION:
        return len(content.decode("utf-8", "replace")), "cut off here"
    if outcome is not Outcome.PARSE_FAILURE:
        return None
    found = parse(content)
    if not isinstance(found, NotJson):
        return None
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:  # then the offset counts bytes
        return len(content[: found.offset].decode("utf-8", "replace")), "no JSON from here on"
    return found.offset, "no JSON from here on"


def excerpt(pieces: Sequence[Piece]) -> list[Piece]:
    """What stands around the first mark."""
    first = next((nth for nth, piece in enumerate(pieces) if piece.mark is not None), None)
    if first is None:
        return []
    before = "".join(piece.text for piece in pieces[:first])
    behind = "".join(piece.text for piece in pieces[first + 1 :])
    return [
        Piece(("… " if len(before) > AROUND else "") + before[-AROUND:]),
        pieces[first],
        Piece(behind[:AROUND] + (" …" if len(behind) > AROUND else "")),
    ]


def _cut(text: str, spans: Iterable[tuple[Span, str]]) -> list[Piece]:
    reasons: dict[Span, list[str]] = {}
    for span, why in spans:
        reasons.setdefault(span, []).append(why)
    pieces, at = [], 0
    for start, end in sorted(reasons):
        if start < at:
            continue
        if start > at:
            pieces.append(Piece(text[at:start]))
        pieces.append(Piece(text[start:end], "; ".join(reasons[start, end])))
        at = end
    return [*pieces, Piece(text[at:])] if at < len(text) or not pieces else pieces


def _place(places: Mapping[str, Span], at: str) -> Span | None:
    while at and at not in places:
        at = at.rpartition("/")[0]
    return places[at] if at else None


class _Writer:
    """Writes JSON as ``json.dumps`` does, and keeps where each value stands: a scalar with its name and whole, an
    object or a list as far as its bracket."""

    def __init__(self, indent: int | None) -> None:
        self.parts: list[str] = []
        self.places: dict[str, Span] = {}
        self._indent = indent
        self._at = 0

    def write(self, value: Json, path: tuple[str | int, ...], start: int | None = None) -> None:
        begun = self._at if start is None else start
        where = pointer(path)
        if isinstance(value, dict | list | tuple) and value:
            named = isinstance(value, dict)
            self._put("{" if named else "[")
            self.places[where] = (begun, self._at)
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for nth, (name, one) in enumerate(items):
                self._put(("," if nth else "") + self._line(len(path) + 1, " " if nth else ""))
                at = self._at
                if named:
                    self._put(json.dumps(name, ensure_ascii=False) + ": ")
                self.write(one, (*path, name), at)
            self._put(self._line(len(path), "") + ("}" if named else "]"))
        else:
            self._put(json.dumps(value, ensure_ascii=False))
            self.places[where] = (begun, self._at)

    def _line(self, depth: int, otherwise: str) -> str:
        return otherwise if self._indent is None else "\n" + " " * (self._indent * depth)

    def _put(self, text: str) -> None:
        self.parts.append(text)
        self._at += len(text)
