"""A validator's errors in terms that a model can act on: where, which keyword, and what must be so.

They name fields and quote no values: a retry note repeats them, and must not show the model its failed answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jsonschema_rs import ValidationErrorKind as Kind

from stepladder.schemas.answer import Violation
from stepladder.schemas.pointer import pointer, value_at
from stepladder.validation.subschemas import MAPS

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from stepladder.schemas.pointer import Path

MAX_SHOWN = 60
"""Characters of a value in a reason."""
MAX_LISTED = 20
"""Options of an ``enum`` in a reason."""
MAX_REASON = 400

_NAMED_BY_PATH = ("dependencies", "dependentRequired", "minContains", "maxContains")
_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_EXAMPLES = {
    "date": "2026-01-31",
    "time": "12:30:00Z",
    "date-time": "2026-01-31T12:30:00Z",
    "duration": "P3DT12H",
    "email": "name@example.com",
    "hostname": "www.example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/path",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


def shown(value: Any, limit: int = MAX_SHOWN) -> str:
    """A value as JSON, cut to ``limit`` characters."""
    return cut(json.dumps(value, ensure_ascii=False, default=str), limit)


def cut(text: str, limit: int = MAX_REASON) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def reason(keyword: str, limit: Any, value: Any) -> str:
    """What a value must be that breaks ``keyword``, whose value in the schema is ``limit``."""
    describe = _REASONS.get(keyword)
    return cut(describe(limit, value)) if describe else f"must satisfy {keyword}"


@dataclass(frozen=True, slots=True)
class SchemaError:
    """One error of a value. ``field``, if given, is the one in the object at ``path`` that must not be present."""

    path: Path
    keyword: str
    reason: str
    field: str | None = None

    @property
    def violation(self) -> Violation:
        return Violation(pointer(self.path), self.reason, self.keyword)


def schema_errors(errors: Iterable[ValidationError], whole: Any) -> set[SchemaError]:
    """A validator's errors about ``whole``. An error that is found twice (by ``allOf``) counts once."""
    return {found for error in errors for found in _described(error, whole)}


def _described(error: ValidationError, whole: Any) -> Iterator[SchemaError]:
    kind, value, path, keyword = error.kind, error.instance, _path(error, whole), _keyword(error)
    match kind:
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            if (meant := _meant(error, context)) is not None:
                yield from schema_errors(meant, whole)
            else:
                yield SchemaError(path, keyword, _no_form(error, context, whole))
        case Kind.AdditionalProperties(unexpected) | Kind.UnevaluatedProperties(unexpected):
            yield from (SchemaError(path, keyword, reason(keyword, name, value), name) for name in unexpected)
        case Kind.FalseSchema() if keyword == "additionalProperties":
            # If the schema names no fields, the library reports the first value without its name: all are wrong.
            names = value_at(whole, path)
            yield from (SchemaError(path, keyword, reason(keyword, name, value), name) for name in names)
        case Kind.PropertyNames(inner):
            why = reason(_keyword(inner), _limit(inner.kind), inner.instance)
            yield SchemaError(path, keyword, f"must not name a field {shown(inner.instance)}: a name {why}")
        case Kind.FalseSchema():
            yield SchemaError(path, keyword, "must not be present")
        case Kind.BacktrackLimitExceeded() | Kind.RegexEngineFailure():
            yield SchemaError(path, keyword, "could not be checked: the pattern takes too long on this text")
        case _:  # the library's own messages would quote the answer
            yield SchemaError(path, keyword, reason(keyword, _limit(kind), value))


def _keyword(error: ValidationError) -> str:
    """The keyword in the schema. The library reports some under another, ``maxContains`` as ``contains``."""
    path = error.evaluation_path
    last = path[-1] if path else ""
    match error.kind:
        case Kind.Required() | Kind.Contains() if last in _NAMED_BY_PATH:
            return str(last)
        case Kind.FalseSchema() if path:
            held = isinstance(last, int) or (len(path) > 1 and path[-2] in (*MAPS, "dependencies"))
            return str(path[-2] if held else last)
        case Kind.BacktrackLimitExceeded() | Kind.RegexEngineFailure():
            return "pattern"
    return error.kind.name


def _limit(kind: Kind) -> Any:
    """The limit in the schema, whatever name the library has for it."""
    names: tuple[str, ...] = getattr(kind, "__match_args__", ())
    return getattr(kind, names[0]) if names else None


def _path(error: ValidationError, whole: Any) -> Path:
    """Where in ``whole`` the error is. The library reports a name of digits as an index: 7 for the field "07"."""
    path: list[str | int] = []
    for step in error.instance_path:
        named = step
        if isinstance(step, int) and isinstance(whole, Mapping) and (named := str(step)) not in whole:
            named = next((name for name in whole if (name.removeprefix("+").lstrip("0") or "0") == named), named)
        path.append(named)
        whole = whole[named]
    return tuple(path)


def _meant(error: ValidationError, branches: list[list[ValidationError]]) -> list[ValidationError] | None:
    """The errors of the one branch that has the value's ``action``; None if there is not exactly one."""
    at = error.instance_path
    near = [branch for branch in branches if not _declines(branch, at)]
    by_action = any(_action_words(branch, at) for branch in branches if branch not in near)
    return near[0] if len(near) == 1 and (by_action or len(branches) == 1) else None


def _declines(branch: list[ValidationError], at: Sequence[str | int]) -> bool:
    """Whether a branch is for another kind of value: for another ``action``, or for another type."""
    for error in branch:
        match error.kind:
            case Kind.Type() if error.instance_path == at:
                return True
            case Kind.AnyOf(context) | Kind.OneOfNotValid(context) if error.instance_path == at:
                if all(_declines(inner, at) for inner in context):
                    return True
            case Kind.Constant() | Kind.Enum() if error.instance_path == [*at, "action"]:
                return True
    return False


def _action_words(branch: list[ValidationError], at: Sequence[str | int]) -> list[Any]:
    """The actions that a branch allows, if it does not allow the value's own."""
    words: list[Any] = []
    for error in branch:
        match error.kind:
            case Kind.Constant(word) if error.instance_path == [*at, "action"]:
                words.append(word)
            case Kind.Enum(options) if error.instance_path == [*at, "action"]:
                words.extend(options)
            case Kind.AnyOf(context) | Kind.OneOfNotValid(context) if error.instance_path == at:
                words.extend(word for inner in context for word in _action_words(inner, at))
    return words


def _no_form(error: ValidationError, branches: list[list[ValidationError]], whole: Any) -> str:
    """Why none of the allowed forms fits, described by the forms that come close."""
    at = error.instance_path
    words = [word for branch in branches for word in _action_words(branch, at)]
    near = [branch for branch in branches if not _declines(branch, at)]
    if words and not near:
        return cut(f'the field "action" must be one of {_listed(words)}')
    where = pointer(_path(error, whole))
    forms = list(dict.fromkeys(_form(branch, where, whole) for branch in near or branches))
    if len(forms) == 1:
        return cut(forms[0])
    return cut(f"must fit one of {len(forms)} allowed forms: " + "; or ".join(forms))


def _form(branch: list[ValidationError], at: str, whole: Any) -> str:
    found = sorted({one.violation for one in schema_errors(branch, whole)}, key=lambda one: (one.pointer, one.source))
    return " and ".join(f"{one.pointer[len(at) :]} {one.reason}".strip() for one in found[:3])


def _listed(options: Sequence[Any]) -> str:
    first = ", ".join(shown(option) for option in options[:MAX_LISTED])
    return first if len(options) <= MAX_LISTED else f"{first}, … ({len(options)} in all)"


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case Sequence():
            return "an array"
    return "a number"


def _type(limit: Any, value: Any) -> str:
    types = [limit] if isinstance(limit, str) else list(limit)
    wanted = " or ".join(_NAMES.get(name, name) for name in types)
    if "integer" in types and isinstance(value, float):
        return f"must be {wanted}, not a number with a fraction"
    return f"must be {wanted}, not {_kind_of(value)}"


def _format(limit: Any, _: Any) -> str:
    example = _EXAMPLES.get(limit)
    return f"must be in the format {limit}" + (f", such as {example}" if example else "")


def _count(bound: str, noun: str) -> Callable[[Any, Any], str]:
    def describe(limit: Any, value: Any) -> str:
        return f"must have {bound} {limit} {noun}{'' if limit == 1 else 's'}, and has {len(value)}"

    return describe


def _one_of(limit: Any, _: Any) -> str:
    return f"must be {shown(limit[0])}" if len(limit) == 1 else f"must be one of {_listed(limit)}"


_REASONS: dict[str, Callable[[Any, Any], str]] = {
    "type": _type,
    "enum": _one_of,
    "const": lambda limit, _: f"must be {shown(limit)}",
    "minimum": lambda limit, _: f"must be at least {limit}",
    "maximum": lambda limit, _: f"must be at most {limit}",
    "exclusiveMinimum": lambda limit, _: f"must be more than {limit}",
    "exclusiveMaximum": lambda limit, _: f"must be less than {limit}",
    "multipleOf": lambda limit, _: f"must be a multiple of {limit}",
    "minLength": _count("at least", "character"),
    "maxLength": _count("at most", "character"),
    "minItems": _count("at least", "item"),
    "maxItems": _count("at most", "item"),
    "minProperties": _count("at least", "field"),
    "maxProperties": _count("at most", "field"),
    "pattern": lambda limit, _: f"must match the pattern {cut(str(limit), 200)}",
    "format": _format,
    "uniqueItems": lambda *_: "must not have the same item twice",
    "required": lambda name, _: f"must have the field {shown(name)}",
    "dependentRequired": lambda name, _: f"must have the field {shown(name)} too, given its other fields",
    "dependencies": lambda name, _: f"must have the field {shown(name)} too, given its other fields",
    "additionalProperties": lambda name, _: f"must not have the field {shown(name)}",
    "unevaluatedProperties": lambda name, _: f"must not have the field {shown(name)}",
    "additionalItems": lambda *_: "must not have more items",
    "contentEncoding": lambda limit, _: f"must be encoded as {limit}",
    "contentMediaType": lambda limit, _: f"must contain {limit}",
    "unevaluatedItems": lambda *_: "must not have more items",
    "contains": lambda *_: "must have an item that matches `contains`",
    "minContains": lambda *_: "must have more items that match `contains`",
    "maxContains": lambda *_: "must have fewer items that fit what `contains` asks for",
    "oneOf": lambda *_: "must fit exactly one of the allowed forms, and fits several",
    "not": lambda limit, _: f"must not be what the schema excludes: {shown(limit)}",
}
