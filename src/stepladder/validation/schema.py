"""The third rung: does the parsed answer fit the turn's one JSON Schema (draft 2020-12)?

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
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema
import jsonschema_rs

from stepladder.schemas.answer import Violation
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.jsontypes import plain
from stepladder.schemas.pointer import pointer
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
from stepladder.validation.schema_errors import SchemaError, cut, reason, schema_errors, shown
from stepladder.validation.subschemas import Subschemas, patterns, references

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_DEPTH = 64
"""Objects and arrays of the schema document inside each other; the libraries underneath recurse."""
MAX_SCHEMA_NODES = 20_000
"""JSON values in the schema document, all counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class BadSchema:
    """What is wrong with a schema: every error at once, each with a pointer into the schema."""

    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A compiled schema. ``schema`` is the one object that prompt, decoder and validator share, ``hash`` its name."""

    schema: Json
    hash: str
    _validator: jsonschema_rs.Draft202012Validator
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
        return BadSchema(_sorted(found))
    subschemas = Subschemas(schema)
    for check in (_metaschema, _local, _finite, _patterns):
        if found := check(subschemas):
            return BadSchema(_sorted(found))
    try:
        validator = jsonschema_rs.Draft202012Validator(
            plain(schema), validate_formats=True, retriever=_refuse, pattern_options=OPTIONS
        )
    except ValueError as error:  # ValidationError is one: an error that the checks above do not cover
        return BadSchema((Violation("", f"cannot be compiled: {cut(str(error).splitlines()[0])}", "schema"),))
    return Schema(schema, content_hash(schema), validator, backtracks(subschemas), alternatives(subschemas))


def _sorted(violations: Iterable[Violation]) -> tuple[Violation, ...]:
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


def _metaschema(subschemas: Subschemas) -> list[Violation]:
    """Checks the schema against the draft's metaschema; a foreign ``$schema`` is refused first."""
    if foreign := [
        Violation(pointer((*path, "$schema")), f"must be {DRAFT}", "$schema")
        for path, part in subschemas.by_path.items()
        if isinstance(part, Mapping) and str(part.get("$schema", DRAFT)).rstrip("#") != DRAFT
    ]:
        return foreign
    root = plain(subschemas.root)
    if jsonschema_rs.meta.is_valid(root):  # a hundred times faster; the other library has errors that we can describe
        return []
    return [
        Violation(pointer(error.absolute_path), _metaschema_reason(error), str(error.validator))
        for error in _metaschema_validator().iter_errors(root)
    ]


@cache
def _metaschema_validator() -> jsonschema.Draft202012Validator:
    # No format checker: it checks `regex` in Python's dialect, and patterns are ECMA's. See `_patterns`.
    return jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


def _metaschema_reason(error: jsonschema.ValidationError) -> str:
    if error.context:
        return "; or ".join(_metaschema_reason(inner) for inner in error.context)
    return reason(str(error.validator), error.validator_value, error.instance)


def _local(subschemas: Subschemas) -> list[Violation]:
    """References lead to a place in this document, and no ``$id`` inside it changes their base."""
    found: list[Violation] = []
    for path, part in subschemas.by_path.items():
        if path and isinstance(part, Mapping) and "$id" in part:
            found.append(Violation(pointer((*path, "$id")), "is allowed at the root of a schema only", "$id"))
        for keyword, target in references(part).items():
            at = pointer((*path, keyword))
            if not target.startswith("#"):
                why = f"must lead to a place in this schema (#/$defs/...), not to {shown(target)}"
                found.append(Violation(at, why, keyword))
            elif subschemas.target(target) is None:
                found.append(Violation(at, f"leads nowhere: this schema has no {shown(target)}", keyword))
    return found


def _finite(subschemas: Subschemas) -> list[Violation]:
    return [Violation(pointer(path), why, "$ref") for path, why in endless(subschemas).items()]


def _patterns(subschemas: Subschemas) -> list[Violation]:
    """Patterns are regular expressions in ECMA's dialect, as the validator understands it."""
    is_regex = _regex_validator().is_valid
    return [
        Violation(pointer((*path, keyword)), f"is not a regular expression: {shown(text)}", keyword)
        for path, keyword, text in patterns(subschemas)
        if not is_regex(text)
    ]


@cache
def _regex_validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"format": "regex"}, validate_formats=True)
