"""Values without an end: a constrained decoder writes on for as long as the schema lets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stepladder.lint.audit.regex import longest
from stepladder.lint.audit.remark import Remark
from stepladder.lint.audit.vocabulary import BOUNDED_FORMATS, CONSTRAINTS

if TYPE_CHECKING:
    from stepladder.lint.audit.values import Value

_HELD_BACK = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


def check_bounds(value: Value) -> Iterator[Remark]:
    """Every bound that one value lacks."""
    if value.listed:
        return
    kinds = value.kinds
    if not kinds:
        if not value.has(*CONSTRAINTS):
            message = "any value of any size fits here: under `{}` xgrammar was seen to write digits without end"
            yield Remark("any_value", value.path, message, "say its `type`, and the bounds of that type")
        return
    if "string" in kinds:
        yield from _text(value)
    if kinds & {"integer", "number"}:
        yield from _number(value)
    if "array" in kinds:
        yield from _list(value)
    if "object" in kinds:
        yield from _object(value)


def _text(value: Value) -> Iterator[Remark]:
    patterns = [pattern for pattern in value.all("pattern") if isinstance(pattern, str)]
    if value.has("maxLength") or any(longest(pattern) is not None for pattern in patterns):
        return
    if any(isinstance(name, str) and name in BOUNDED_FORMATS for name in value.all("format")):
        return
    if patterns:
        remedy = "bound its repetitions, as in `^[A-Z]{1,40}$`; some engines lose `maxLength` beside `pattern`"
    elif value.has("format"):
        remedy = "write a `pattern` with bounded repetitions; vLLM 0.29 and later refuse `maxLength` beside `format`"
    else:
        remedy = "add `maxLength`, or list the texts in an `enum`"
    message = "nothing bounds this text, so that the model may write until its budget ends"
    yield Remark("no_max_length", value.path, message, remedy)


def _number(value: Value) -> Iterator[Remark]:
    missing = [ways[0] for ways in _HELD_BACK if not value.has(*ways)]
    if missing:
        names = " and no ".join(f"`{name}`" for name in missing)
        message = f"this number has no {names}: pushed off what it wants, a model writes digits until its budget ends"
        yield Remark("no_range", value.path, message, f"add {' and '.join(f'`{name}`' for name in missing)}")


def _list(value: Value) -> Iterator[Remark]:
    rest = value.all("items") + value.all("unevaluatedItems")
    if not value.has("maxItems") and not any(item is False for item in rest):
        message = "nothing bounds this list, so that the model may write items until its budget ends"
        yield Remark("no_max_items", value.path, message, "add `maxItems`")
    if not value.has("items", "prefixItems"):
        message = "nothing says what the items are: any value of any size fits, and xgrammar lets `[]` alone pass"
        yield Remark("any_value", value.path, message, "add `items: {type: ...}`")


def _object(value: Value) -> Iterator[Remark]:
    rest = value.all("additionalProperties") + value.all("unevaluatedProperties")
    if any(one is False for one in rest):
        return
    if any(isinstance(one, Mapping) and one for one in rest) or (not rest and value.has("patternProperties")):
        if not value.has("maxProperties"):
            message = "nothing bounds how many names the model makes: it may write them until its budget ends"
            yield Remark("no_max_properties", value.path, message, "add `maxProperties`, or name the `properties`")
        return
    message = "the model may add names and values of its own making, of any size"
    if not value.has("properties"):
        message = "this object has no `properties`: " + message
    yield Remark("open_object", value.path, message, "add `additionalProperties: false`")
