"""Values without a bound: a constrained decoder writes on for as long as the schema lets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stepladder.lint.audit.regex import longest
from stepladder.lint.audit.remark import Remark
from stepladder.lint.audit.vocabulary import BOUNDED_FORMATS, CONSTRAINTS
from stepladder.validation.subschemas import REFERENCES

if TYPE_CHECKING:
    from stepladder.lint.values import Value

UNTIL = "so the model may write until its token budget ends"


def check_bounds(value: Value) -> Iterator[Remark]:
    """Every bound that one value lacks."""
    kinds = value.kinds
    if value.listed is not None:
        return
    if not kinds and not value.has(*CONSTRAINTS.difference(REFERENCES)):
        message = "a value of any type and size fits here: under `{}` xgrammar was seen to write digits without end"
        yield Remark("any_value", value.path, message, "add a `type`, and the bounds of that type")
    if "string" in kinds:
        yield from _string(value)
    if kinds & {"integer", "number"}:
        bounds = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
        if missing := [f"`{one[0]}`" for one in bounds if not value.has(*one)]:
            message = f"this number has no {' and no '.join(missing)}, {UNTIL}"
            yield Remark("no_range", value.path, message, f"add {' and '.join(missing)}")
    if "array" in kinds:
        rest = value.all("items") + value.all("unevaluatedItems")
        if not value.has("maxItems") and not any(item is False for item in rest):
            yield Remark("no_max_items", value.path, f"this array has no maximum length, {UNTIL}", "add `maxItems`")
        if not value.has("items", "prefixItems"):
            message = "this array has no `items`: values of any type and size fit, and xgrammar allows `[]` alone"
            yield Remark("any_value", value.path, message, "add `items: {type: ...}`")
    if "object" in kinds:
        yield from _object(value)


def _string(value: Value) -> Iterator[Remark]:
    patterns = [pattern for pattern in value.all("pattern") if isinstance(pattern, str)]
    formats = [name for name in value.all("format") if isinstance(name, str)]
    if value.has("maxLength") or BOUNDED_FORMATS & {*formats} or any(longest(one) is not None for one in patterns):
        return
    if patterns:
        remedy = "limit its repetitions, as in `^[A-Z]{1,40}$`; some engines ignore `maxLength` beside `pattern`"
    elif value.has("format"):
        remedy = "use a `pattern` with limited repetitions; vLLM 0.29 and later refuse `maxLength` next to `format`"
    else:
        remedy = "add `maxLength`, or list the strings in an `enum`"
    yield Remark("no_max_length", value.path, f"this string has no maximum length, {UNTIL}", remedy)


def _object(value: Value) -> Iterator[Remark]:
    rest = value.all("additionalProperties") + value.all("unevaluatedProperties")
    if any(one is False for one in rest):
        return
    if any(isinstance(one, Mapping) and one for one in rest) or (not rest and value.has("patternProperties")):
        if not value.has("maxProperties"):
            message = f"this object may have any number of properties, {UNTIL}"
            yield Remark("no_max_properties", value.path, message, "add `maxProperties`, or name the `properties`")
        return
    message = "" if value.has("properties") else "this object has no `properties`: "
    message += "the model may add properties of any name, type and size"
    yield Remark("open_object", value.path, message, "add `additionalProperties: false`")
