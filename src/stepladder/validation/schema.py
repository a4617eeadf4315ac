"""The third rung: does the parsed answer fit the turn's one JSON Schema, in the draft that its ``$schema`` names?

``jsonschema-rs`` validates. By default it fetches ``http`` and ``file`` references and follows a foreign ``$schema``,
so the draft is named, formats are on, nothing is ever fetched, and a schema that could make it fetch something, or run
in a circle, is refused when it is compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import jsonschema_rs

from stepladder.schemas.answer import Violation
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.finding import Finding
from stepladder.schemas.jsontypes import plain
from stepladder.schemas.pointer import pointer, value_at
from stepladder.validation.costs import (
    MAX_CHARACTERS,
    MAX_VALUES,
    OPTIONS,
    alternatives,
    backtracks,
    characters,
    is_heavy,
)
from stepladder.validation.cycles import endless
from stepladder.validation.drafts import DRAFTS, LATEST
from stepladder.validation.parts import Parts
from stepladder.validation.schema_errors import SchemaError, cut, schema_errors, shown
from stepladder.validation.subschemas import Subschemas, patterns
from stepladder.validation.upgrade import Upgraded, encoded, upgrade

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

MAX_SCHEMA_DEPTH = 64
"""Objects and arrays of the schema document inside each other; the libraries underneath recurse."""
MAX_SCHEMA_NODES = 20_000
"""JSON values in the schema document, all counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SchemaFault(Violation):
    """What is wrong with a schema, at a pointer into it; ``code`` and ``remedy`` are those of a finding."""

    code: str = "bad_schema"
    remedy: str = ""

    def finding(self, where: Iterable[str | int]) -> Finding:
        """``where`` is the place of the schema in a document."""
        return Finding(self.code, pointer(where) + self.pointer, f"this JSON Schema {self.reason}", self.remedy)


@dataclass(frozen=True, slots=True)
class BadSchema:
    """What is wrong with a schema: every error at once. ``upgraded`` is None if it breaks its draft's metaschema."""

    violations: tuple[SchemaFault, ...]
    upgraded: Upgraded | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A compiled schema. ``schema`` is the one object that prompt and decoder share, ``hash`` its name.

    ``declared`` is the schema as it was written, which the validator keeps to. It is the same object, unless an older
    draft or an ``$id`` inside made ``upgrade`` write another, with ``upgraded``.
    """

    schema: Json
    hash: str
    declared: Json
    upgraded: Upgraded
    _validator: jsonschema_rs.Draft202012Validator  # or the class of another draft
    _backtracks: bool
    _alternatives: str | None

    def violations(self, value: Json) -> tuple[Violation, ...]:
        """Everything in ``value`` that breaks the schema, by pointer and then by keyword; empty when it fits.

        If there are more than ``MAX_VALUES`` values, the first error alone, or only that there is one.

        ``Violation.source`` is the keyword. An unpaired surrogate, or a Python object that JSON does not have, breaks
        a schema that looks at it. A value that did not come out of ``parse``, such as a tool's result, goes through it
        first: here NaN would be taken for null, and the library has no bound on depth.
        """
        errors = self.errors(value)
        return _sorted(error.violation for error in errors) if errors else ()

    def errors(self, value: Json) -> Collection[SchemaError]:
        """The same, unsorted, with paths in place of pointers."""
        try:
            return self._errors(value)
        except ValueError:  # an unpaired surrogate, or a mapping or sequence that is no dict or list
            return list(not_json(value)) or self._errors(plain(value))

    def _errors(self, value: Any) -> Collection[SchemaError]:
        if self._backtracks and (length := characters(value)) > MAX_CHARACTERS:
            why = f"must have at most {MAX_CHARACTERS} characters in all its texts, and has {length}"
            return (SchemaError((), "pattern", f"{why}: the schema has a pattern that looks around or back"),)
        if self._validator.is_valid(value):
            return ()
        if not is_heavy(value):
            return schema_errors(self._validator.iter_errors(value), value)
        if self._alternatives is not None:
            why = f"breaks the schema, and is too large (over {MAX_VALUES} values) to say where; it must be shorter"
            return (SchemaError((), self._alternatives, why),)
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return schema_errors([error], value)
        return ()


def compile_schema(schema: Json) -> Schema | BadSchema:
    """Check a schema and compile it. Never raises and never reaches out: what is wrong comes back as a value."""
    if found := _size(schema) or [error.violation for error in not_json(schema)]:
        return _bad(found)
    parts = Parts(schema)
    if found := _drafts(parts) or _metaschema(parts):
        return _bad(found, _other_draft(schema))
    upgraded = upgrade(parts)
    subschemas = Subschemas(upgraded.schema)
    if faults := [*_references(parts), *_finite(subschemas, upgraded), *_patterns(subschemas, upgraded)]:
        return BadSchema(_sorted(faults), upgraded)
    try:
        validator = (parts.draft or LATEST).validator(
            _written(parts) if parts.draft is not None else plain(upgraded.schema),
            validate_formats=True,
            retriever=_refuse,
            pattern_options=OPTIONS,
        )
    except ValueError as error:  # ValidationError is one: an error that the checks above do not cover
        why = f"cannot be compiled: {cut(str(error).splitlines()[0])}"
        return BadSchema((SchemaFault("", why, "schema"),), upgraded)
    return Schema(
        schema=upgraded.schema,
        hash=content_hash(upgraded.schema),
        declared=schema,
        upgraded=upgraded,
        _validator=validator,
        _backtracks=backtracks(subschemas),
        _alternatives=alternatives(subschemas),
    )


def _written(parts: Parts) -> Any:
    """The schema as it is written, for the library, which refuses references that are no URIs."""
    schema = plain(parts.root)
    for path in parts.targets:
        holder = value_at(schema, path[:-1])
        holder[path[-1]] = encoded(holder[path[-1]])
    return schema


def _bad(found: Iterable[Violation], remedy: str = "") -> BadSchema:
    return BadSchema(_sorted(SchemaFault(one.pointer, one.reason, one.source, remedy=remedy) for one in found))


def _other_draft(schema: Json) -> str:
    """For a schema that names no draft, and is sound in an older one."""
    if not isinstance(schema, Mapping) or "$schema" in schema:
        return ""
    whole = plain(schema)
    older = next((draft for draft in DRAFTS[-2::-1] if not draft.faults(whole)), None)
    return f"without `$schema` it is {LATEST.name}; for {older.name} add `$schema: {older.uri}`" if older else ""


V = TypeVar("V", bound=Violation)


def _sorted(violations: Iterable[V]) -> tuple[V, ...]:
    return tuple(sorted(set(violations), key=lambda found: (found.pointer, found.source, found.reason)))


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references are local; {uri} is not fetched")


def _size(schema: Json) -> tuple[Violation, ...]:
    waiting: list[tuple[int, Any]] = [(1, schema)]
    count = 0
    while waiting:
        depth, value = waiting.pop()
        count += 1
        if depth > MAX_SCHEMA_DEPTH:
            return (Violation("", f"must not nest more than {MAX_SCHEMA_DEPTH} deep", "size"),)
        if count > MAX_SCHEMA_NODES:
            return (Violation("", f"must not have more than {MAX_SCHEMA_NODES} values", "size"),)
        if isinstance(value, Mapping):
            waiting.extend((depth + 1, item) for item in value.values())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            waiting.extend((depth + 1, item) for item in value)
    return ()


def not_json(value: Any, path: Path = ()) -> Iterator[SchemaError]:
    """Everything in a Python value that JSON cannot spell."""
    match value:
        case str():
            if not _is_text(value):
                yield SchemaError(path, "type", "contains an unpaired surrogate")
        case None | bool() | int():
            pass
        case float():
            if not math.isfinite(value):
                yield SchemaError(path, "type", f"must be a finite number, not {value}")
        case Mapping():
            for name, item in value.items():
                if not isinstance(name, str) or not _is_text(name):
                    yield SchemaError(path, "type", f"must have strings of whole characters as names, not {name!r}")
                yield from not_json(item, (*path, name))
        case Sequence() if not isinstance(value, bytes | bytearray):
            for index, item in enumerate(value):
                yield from not_json(item, (*path, index))
        case _:
            yield SchemaError(path, "type", f"must be a JSON value, not a Python {type(value).__name__}")


def _is_text(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def _drafts(parts: Parts) -> list[Violation]:
    known = ", ".join(draft.uri for draft in DRAFTS)
    return [Violation(pointer(path), f"must be one of {known}", "$schema") for path in parts.unknown]


def _metaschema(parts: Parts) -> list[Violation]:
    return [
        Violation(pointer(path) + fault.pointer, fault.reason, fault.source)
        for path, draft, piece in parts.pieces
        for fault in draft.faults(piece)
    ]


def _references(parts: Parts) -> Iterator[SchemaFault]:
    """References lead to a place in this document."""
    for path, reference, remote in parts.unresolved:
        place, keyword = pointer(path), str(path[-1])
        if remote:
            why = f"must lead to a place in this schema (#/$defs/...), not to {shown(reference)}"
            remedy = "copy the schema into `$defs`, and refer to `#/$defs/NAME`"
            yield SchemaFault(place, why, keyword, "remote_reference", remedy)
        else:
            why = f"leads nowhere: this schema has no {shown(reference)}"
            yield SchemaFault(place, why, keyword, "dangling_reference", "refer to a schema under `$defs`")


def _finite(subschemas: Subschemas, upgraded: Upgraded) -> Iterator[SchemaFault]:
    remedy = "add a branch that does not refer back, or a list that may be empty"
    for path, why in endless(subschemas).items():
        yield SchemaFault(pointer(upgraded.origin(path)), why, "$ref", "endless_reference", remedy)


def _patterns(subschemas: Subschemas, upgraded: Upgraded) -> Iterator[SchemaFault]:
    """Patterns are regular expressions in ECMA's dialect, as the validator understands it."""
    is_regex = _regex_validator().is_valid
    for path, keyword, text in patterns(subschemas):
        if not is_regex(text):
            why = f"is not a regular expression: {shown(text)}"
            yield SchemaFault(pointer(upgraded.origin((*path, keyword))), why, keyword)


@cache
def _regex_validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"format": "regex"}, validate_formats=True)
