"""The usable part of an answer that was not accepted, if the document's author asked for it.

The answer is not repaired: the result is a part of it, with everything that is lost or uncertain. It is shown to people
and programs with the failure, and the machine never reads it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jiter

from stepladder.schemas.degraded import Loss
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.pointer import pointer, value_at
from stepladder.validation.parse import Parsed, parse, tokens
from stepladder.validation.schema import not_json
from stepladder.validation.schema_errors import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path
    from stepladder.validation.schema import Schema

MAX_BYTES = 128 * 1024
"""Nothing is kept of a larger answer, so that a worker is never busy with it for long."""
MAX_DOCUMENTS = 4
"""Objects and arrays that are tried in one answer, if there is text around them."""
MAX_LOSSES = 100
MAX_POINTER = 500

SALVAGED: tuple[Outcome, ...] = (
    Outcome.TRUNCATION,
    Outcome.PARSE_FAILURE,
    Outcome.SCHEMA_VIOLATION,
    Outcome.SEMANTIC,
)
"""The outcomes whose answers may be salvaged. A refusal, an empty answer and a lost connection leave nothing."""

_OPENING = re.compile(r'[{\[][ \t\n\r]*+(?:["{}\[\]]|-?[0-9]|(?:true|false|null|NaN|-?Infinity)\b)')
_NUMBER_AT_END = re.compile(r"-?[0-9][-+.0-9eE]*\Z")
_AFTER_NUMBER = frozenset(" \t\n\r,]}")
_OF_MEMBERS = frozenset({
    "additionalProperties", "unevaluatedProperties", "propertyNames", "required", "dependentRequired", "minProperties",
    "maxProperties", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "unevaluatedItems", "additionalItems", "dependencies", "anyOf", "oneOf", "not",
})  # fmt: skip
"""Keywords that an object or array breaks by what it has or lacks: such an object or array is kept."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What is kept, and everything that is lost or unsure.

    Pointers are into the answer as the model wrote it; those of errors that remain are into ``value``.
    """

    value: Json
    lost: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    """An object or array in a text. ``broken_at`` is the path at which it breaks off; None if it is complete."""

    value: Any
    start: int
    end: int
    repeated: tuple[str, ...] = ()
    broken_at: Path | None = None


def salvage(content: bytes, schema: Schema, outcome: Outcome) -> Salvaged | None:
    """What can be kept of the exact ``content`` of an answer with this ``outcome``; None if nothing can.

    The first document in it of which something is left, closed after its last complete value if it breaks off, and
    without the members that break the schema. Rules are not evaluated. Never raises.
    """
    if outcome not in SALVAGED or len(content) > MAX_BYTES:
        return None
    try:
        return _salvage(content, schema, outcome)
    except RecursionError:
        return None


def _salvage(content: bytes, schema: Schema, outcome: Outcome) -> Salvaged | None:
    if isinstance(parsed := parse(content), Parsed):
        if outcome is not Outcome.TRUNCATION:
            return _fitting(parsed.value, schema, [])
        if isinstance(parsed.value, int | float) and not isinstance(parsed.value, bool):
            return None  # more digits may have been to come
        return _fitting(parsed.value, schema, [Loss("", "the answer was cut off; what was to follow is lost")])
    text = content.decode("utf-8", "replace")
    for document in _documents(text):
        losses = list(_losses_around(text, document, outcome))
        if text.encode() != content:
            losses.append(Loss("", "bytes that are not UTF-8 are replaced by U+FFFD"))
        if (salvaged := _fitting(document.value, schema, losses)) is not None:
            return salvaged
    return None


def _documents(text: str) -> Iterator[_Document]:
    """The objects and arrays in a text, none of them inside another."""
    at: int | None = 0
    for _ in range(MAX_DOCUMENTS):
        if at is None or (opening := _OPENING.search(text, at)) is None:
            return
        document = _read(text, opening.start())
        if document is not None:
            yield document
        complete = document is not None and document.broken_at is None
        at = document.end if document is not None and complete else _closing(text, opening.start())


def _closing(text: str, start: int) -> int | None:
    """Where the bracket at ``start`` is closed."""
    brackets = ((at, token) for at, token, depth in tokens(text[start:]) if depth == 1)
    return next((start + at + 1 for at, token in brackets if token in ("]", "}")), None)


def _read(text: str, start: int) -> _Document | None:
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(name for name, times in Counter(name for name, _ in items).items() if times > 1)
        return dict(items)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=pairs).raw_decode(text, start)
    except json.JSONDecodeError as error:
        return _read_beginning(text, start, error.pos)
    except ValueError:  # an integer of thousands of digits
        return None
    return _Document(value, start, end, tuple(repeated))


def _read_beginning(text: str, start: int, stop: int) -> _Document | None:
    """The JSON between ``start`` and ``stop``, where a decoder gave up, without containers that have just begun."""
    begun = text[start:stop]
    if text[stop : stop + 1] not in _AFTER_NUMBER:  # more digits may have been to come
        begun = _NUMBER_AT_END.sub("", begun)
    try:
        value = jiter.from_json(begun.encode(), partial_mode="on", catch_duplicate_keys=True)
    except ValueError:
        return None
    depth = sum((token in ("{", "[")) - (token in ("}", "]")) for _, token, _ in tokens(begun))
    path: list[str | int] = []
    inner: Any = value
    while len(path) < depth - 1 and isinstance(inner, dict | list) and inner:
        step: Any = len(inner) - 1 if isinstance(inner, list) else list(inner)[-1]
        path.append(step)
        inner = inner[step]
    while path and not value_at(value, path):
        del value_at(value, path[:-1])[path[-1]]
        path.pop()
    return _Document(value, start, stop, broken_at=tuple(path))


def _losses_around(text: str, document: _Document, outcome: Outcome) -> Iterator[Loss]:
    before, after = text[: document.start].strip(), text[document.end :].strip()
    if before:
        yield Loss("", f"{_kind_of(before)} before the document is left out")
    if document.broken_at is not None:
        cut_off = "the answer was cut off; everything after the last complete value is lost"
        not_json_on = "the answer stops being JSON; everything after the last complete value is left out"
        yield _loss(document.broken_at, cut_off if outcome is Outcome.TRUNCATION else not_json_on)
    else:
        if after:
            yield Loss("", f"{_kind_of(after)} after the document is left out")
        if outcome is Outcome.TRUNCATION:
            yield Loss("", "the answer was cut off after this document; what was to follow is lost")
    for name in document.repeated:
        yield Loss("", cut(f"an object has the name {json.dumps(name)} more than once; only the last value is kept"))


def _kind_of(text: str) -> str:
    return "the Markdown fence" if text.startswith(("```", "~~~")) else "the text"


def _fitting(value: Any, schema: Schema, losses: list[Loss]) -> Salvaged | None:
    """``value`` without the members that break the schema."""
    for error in reversed(list(not_json(value))):  # the inner ones first
        if not error.path:
            return None
        value_at(value, error.path[:-1])[error.path[-1]] = None
        losses.append(_loss(error.path, f"replaced by null: {error.reason}"))
    wrong = _wrong_members(value, schema)
    if () in wrong:
        return None
    for path, reason in sorted(wrong.items(), key=lambda item: pointer(item[0])):
        losses.append(_loss(path, f"left out, since it breaks the schema: {reason}"))
    # Inner members first, and later items of a list before earlier ones, so that the other paths stay true.
    for path in sorted(wrong, key=lambda path: (len(path), path[-1] if isinstance(path[-1], int) else 0), reverse=True):
        del value_at(value, path[:-1])[path[-1]]
    losses += [
        Loss(cut(violation.pointer, MAX_POINTER), f"still breaks the schema: {violation.reason}")
        for violation in schema.violations(value)
    ]
    if losses and (value is None or value in ("", [], {})):
        return None
    if not isinstance(parse(json.dumps(value).encode()), Parsed):  # too deep, or an integer too large to keep
        return None
    more = [Loss("", f"and {len(losses) - MAX_LOSSES} more losses")] if len(losses) > MAX_LOSSES else []
    return Salvaged(value, (*losses[:MAX_LOSSES], *more))


def _wrong_members(value: Any, schema: Schema) -> dict[Path, str]:
    """The paths of everything that has to be left out, each with the reason."""
    wrong: dict[Path, str] = {}
    for error in schema.errors(value):
        if error.field is not None:
            wrong[*error.path, error.field] = error.reason
        elif error.keyword not in _OF_MEMBERS or not isinstance(value_at(value, error.path), dict | list):
            wrong[error.path] = error.reason
    return wrong


def _loss(path: Path, reason: str) -> Loss:
    return Loss(cut(pointer(path).encode("utf-8", "replace").decode(), MAX_POINTER), reason)
