"""Texts with the places of their errors highlighted, as pieces that a page shows one after the other."""

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
"""Characters that an excerpt shows before and after the error."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text, and its error if it has one. An error without text is between two characters."""

    text: str
    error: str | None = None


def pretty(value: Json) -> str:
    """JSON, over several lines if one line would be long."""
    short = json_text(value)
    return short if len(short) <= SHORT else json.dumps(json.loads(short), ensure_ascii=False, indent=2)


def highlight_json(value: Json, errors: Sequence[tuple[str, str]]) -> list[Piece]:
    """The same text as ``pretty``, with ``errors`` as (pointer, reason) highlighted.

    An error at a missing field highlights the object that lacks it; the whole value is never highlighted.
    """
    if not any(at for at, _ in errors):
        return [Piece(pretty(value))]
    places: dict[str, Span] = {}
    text = _write(value, (), 0, None if len(json_text(value)) <= SHORT else 2, places)
    spans = ((_place(places, at), why) for at, why in errors)
    return _cut(text, [(span, why) for span, why in spans if span is not None])


def highlight_text(text: str, at: int, why: str) -> list[Piece]:
    """The text with one character highlighted, or its end."""
    return _cut(text, [((min(at, len(text)), min(at + 1, len(text))), why)])


def stopped_at(content: bytes, outcome: Outcome | None) -> tuple[int, str] | None:
    """The character at which an answer was cut off or stopped being JSON, and which of the two."""
    if outcome is Outcome.TRUNCATION:
        return len(content.decode("utf-8", "replace")), "cut off here"
    if outcome is not Outcome.PARSE_FAILURE:
        return None
    found = parse(content)
    if not isinstance(found, NotJson):
        return None
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:  # the offset counts bytes then
        return len(content[: found.offset].decode("utf-8", "replace")), "not JSON from here on"
    return found.offset, "not JSON from here on"


def excerpt(pieces: Sequence[Piece]) -> list[Piece]:
    """The text around the first error."""
    first = next((nth for nth, piece in enumerate(pieces) if piece.error is not None), None)
    if first is None:
        return []
    before = "".join(piece.text for piece in pieces[:first])
    after = "".join(piece.text for piece in pieces[first + 1 :])
    return [
        Piece(("… " if len(before) > AROUND else "") + before[-AROUND:]),
        pieces[first],
        Piece(after[:AROUND] + (" …" if len(after) > AROUND else "")),
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


def _write(value: Json, path: tuple[str | int, ...], at: int, indent: int | None, places: dict[str, Span]) -> str:
    """Writes JSON that begins at ``at``, and each value's place: a scalar's with its name, or up to the bracket."""
    if not (isinstance(value, dict | list | tuple) and value):
        return json.dumps(value, ensure_ascii=False)
    named = isinstance(value, dict)
    text = "{" if named else "["
    for nth, (name, one) in enumerate(value.items() if isinstance(value, dict) else enumerate(value)):
        text += ("," if nth else "") + _break(indent, len(path) + 1, " " if nth else "")
        start = at + len(text)
        text += json.dumps(name, ensure_ascii=False) + ": " if named else ""
        head, inner = at + len(text), _write(one, (*path, name), at + len(text), indent, places)
        places[pointer((*path, name))] = start, head + (1 if inner[0] in "{[" and len(inner) > 2 else len(inner))
        text += inner
    return text + _break(indent, len(path), "") + ("}" if named else "]")


def _break(indent: int | None, depth: int, otherwise: str) -> str:
    return otherwise if indent is None else "\n" + " " * (indent * depth)
