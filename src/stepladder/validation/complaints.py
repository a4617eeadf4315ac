"""A validator's errors as violations: where, by which keyword, and in words that a model can act on.

They name fields, and quote no value: a retry tells them to the model, which is not to be shown its failed answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jsonschema_rs import ValidationErrorKind as Kind

from stepladder.schemas.answer import Violation
from stepladder.schemas.pointer import pointer, value_at
from stepladder.validation.subschemas import MAPS

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MAX_SHOWN = 60
"""Characters of a value in a reason."""
MAX_LISTED = 20
"""Options of an ``enum`` in a reason."""
MAX_REASON = 400

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
    """A value as JSON, or a text as it is, cut to ``limit`` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def cut(text: str, limit: int = MAX_REASON) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def reason(keyword: str, limit: Any, value: Any) -> str:
    """What the value must be, given the keyword that it breaks and what stands beside that keyword in the schema."""
    words = _WORDS.get(keyword)
    return cut(words(limit, value)) if words else f"must satisfy {keyword}"


def complaints(errors: Iterable[ValidationError], whole: Any) -> set[Violation]:
    """The violations behind a validator's errors about ``whole``. The same fault found twice (by ``allOf``) is one."""
    return {violation for error in errors for violation in _complain(error, whole)}


def _complain(error: ValidationError, whole: Any) -> Iterator[Violation]:
    path = _path(error, whole)
    kind, value, at, keyword = error.kind, error.instance, pointer(path), _keyword(error)
    match kind:
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            if (meant := _meant(error, context)) is not None:
                yield from complaints(meant, whole)
            else:
                yield Violation(at, _no_form(error, context, whole), keyword)
        case Kind.AdditionalProperties(unexpected) | Kind.UnevaluatedProperties(unexpected):
            yield from (Violation(at, reason(keyword, name, value), keyword) for name in unexpected)
        case Kind.FalseSchema() if keyword == "additionalProperties":
            # Where no other keyword names a field, the library tells the first value and not its name: all are wrong.
            names = value_at(whole, path)
            yield from (Violation(at, reason(keyword, name, value), keyword) for name in names)
        case Kind.PropertyNames(inner):
            why = reason(_keyword(inner), _limit(inner.kind), inner.instance)
            yield Violation(at, f"must not name a field {shown(inner.instance)}: a name {why}", keyword)
        case Kind.FalseSchema():
            yield Violation(at, "must not be there", keyword)
        case Kind.BacktrackLimitExceeded() | Kind.RegexEngineFailure():
            yield Violation(at, "could not be checked: the pattern takes too long on this text", keyword)
        case _:  # the library's own words would quote the answer
            yield Violation(at, reason(keyword, _limit(kind), value), keyword)


def _keyword(error: ValidationError) -> str:
    """The word in the schema that was broken. The library knows some by their kind, ``maxContains`` as ``contains``."""
    path = error.evaluation_path
    last = path[-1] if path else ""
    if last in ("dependentRequired", "minContains", "maxContains"):
        return str(last)
    match error.kind:
        case Kind.FalseSchema() if path:
            held = isinstance(last, int) or (len(path) > 1 and path[-2] in MAPS)
            return str(path[-2] if held else last)
        case Kind.BacktrackLimitExceeded() | Kind.RegexEngineFailure():
            return "pattern"
    return error.kind.name


def _limit(kind: Kind) -> Any:
    """What the schema asks for, by whatever name the library keeps it."""
    match kind:
        case Kind.Type(limit) | Kind.Enum(limit) | Kind.Constant(limit) | Kind.Required(limit) | Kind.Not(limit):
            return limit
        case Kind.Pattern(limit) | Kind.Format(limit) | Kind.MultipleOf(limit) | Kind.UnevaluatedItems(limit):
            return limit
        case Kind.Minimum(limit) | Kind.Maximum(limit) | Kind.ExclusiveMinimum(limit) | Kind.ExclusiveMaximum(limit):
            return limit
        case Kind.MinLength(limit) | Kind.MaxLength(limit) | Kind.MinItems(limit) | Kind.MaxItems(limit):
            return limit
        case Kind.MinProperties(limit) | Kind.MaxProperties(limit):
            return limit
    return None


def _path(error: ValidationError, whole: Any) -> list[str | int]:
    """Where in ``whole`` the error is. The library takes a name that is a number for one: 7 for the field "07"."""
    path: list[str | int] = []
    for step in error.instance_path:
        named = step
        if isinstance(step, int) and isinstance(whole, Mapping) and (named := str(step)) not in whole:
            named = next((name for name in whole if (name.removeprefix("+").lstrip("0") or "0") == named), named)
        path.append(named)
        whole = whole[named]
    return path


def _meant(error: ValidationError, branches: list[list[ValidationError]]) -> list[ValidationError] | None:
    """The errors of the branch whose ``action`` the value names, where exactly one does and the others decline it."""
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
    """The actions that a branch would have taken, if it declined the value's own."""
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
    """Why none of the allowed forms fits, told by the forms that come near."""
    at = error.instance_path
    words = [word for branch in branches for word in _action_words(branch, at)]
    near = [branch for branch in branches if not _declines(branch, at)]
    if words and not near:
        return cut(f'the field "action" must be one of {_listed(words)}')
    where = pointer(_path(error, whole))
    forms = list(dict.fromkeys(_told(branch, where, whole) for branch in near or branches))
    if len(forms) == 1:
        return cut(forms[0])
    return cut(f"must fit one of {len(forms)} allowed forms: " + "; or ".join(forms))


def _told(branch: list[ValidationError], at: str, whole: Any) -> str:
    found = sorted(complaints(branch, whole), key=lambda violation: (violation.pointer, violation.source))
    told = [
        f"{violation.pointer[len(at) :]} {violation.reason}" if violation.pointer != at else violation.reason
        for violation in found
    ]
    return " and ".join(told[:3])


def _listed(options: Sequence[Any]) -> str:
    told = ", ".join(shown(option) for option in options[:MAX_LISTED])
    return told if len(options) <= MAX_LISTED else f"{told}, … ({len(options)} in all)"


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
    def words(limit: Any, value: Any) -> str:
        plural = noun if limit == 1 else ("entries" if noun == "entry" else noun + "s")
        return f"must have {bound} {limit} {plural}, and has {len(value)}"

    return words


def _one_of(limit: Any, _: Any) -> str:
    return f"must be {shown(limit[0])}" if len(limit) == 1 else f"must be one of {_listed(limit)}"


_WORDS: dict[str, Callable[[Any, Any], str]] = {
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
    "dependentRequired": lambda name, _: f"must have the field {shown(name)} too, beside the fields that are there",
    "additionalProperties": lambda name, _: f"must not have the field {shown(name)}",
    "unevaluatedProperties": lambda name, _: f"must not have the field {shown(name)}",
    "unevaluatedItems": lambda *_: "must not have that many items",
    "contains": lambda *_: "must have an item that fits what `contains` asks for",
    "minContains": lambda *_: "must have more items that fit what `contains` asks for",
    "maxContains": lambda *_: "must have fewer items that fit what `contains` asks for",
    "oneOf": lambda *_: "must fit exactly one of the allowed forms, and fits several",
    "not": lambda limit, _: f"must not be what the schema excludes: {shown(limit)}",
}
