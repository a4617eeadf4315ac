"""What to write in place of a form that an engine does not enforce."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_CASES = "write the cases as branches of `anyOf`, told apart by a `const`, or check it by a rule"
_PATTERN = "write the pattern without it, or check the text by a rule with `matches()`"
_BESIDE = "write everything into one place: into each branch, or into the schema that is referred to"
_TYPE = "add the `type` beside it"

REMEDIES: Mapping[str, str] = {
    "uniqueItems": "check it by a rule: `output.LIST.all(a, output.LIST.exists_one(b, b == a))`",
    "contains": "check it by a rule: `output.LIST.exists(item, ...)`",
    "not": "list what is allowed, or check it by a rule",
    "if": _CASES,
    "dependentRequired": _CASES,
    "dependentSchemas": _CASES,
    "unevaluatedItems": "write `maxItems`, or `items: false` behind `prefixItems`",
    "unevaluatedProperties": "write `additionalProperties: false`, with all `properties` in one place",
    "propertyNames": "name the `properties`, or make it a list of objects with a `name`",
    "patternProperties": "name the `properties`, or make it a list of objects with a `name`",
    "multipleOf": "count in the smaller unit, such as cents, or check it by a rule",
    "pattern with a look-around": _PATTERN,
    "pattern with a back-reference": _PATTERN,
    "pattern with a word boundary": _PATTERN,
    "pattern with a Unicode property": "write the characters as a class, such as `[A-Za-z]`",
    "pattern with \\d, \\w or \\s": "write the characters as a class: `[0-9]`, `[A-Za-z0-9_]`, `[ ]`",
    "pattern, not anchored": "anchor it: `^...$`",
    "format": "write an anchored `pattern`",
    "minLength beside pattern": "bound the pattern's repetitions instead, as in `^[A-Z]{1,40}$`",
    "maxLength beside pattern": "bound the pattern's repetitions instead, as in `^[A-Z]{1,40}$`",
    "minLength beside format": "keep one of the two",
    "maxLength beside format": "keep one of the two, or write a `pattern` with bounded repetitions",
    "minLength": "check it by a rule",
    "minItems above 2000": "ask for fewer, or for one element a turn",
    "minLength above 2000": "ask for less text",
    "minimum": "check it by a rule as well, or count in whole numbers",
    "maximum": "check it by a rule as well, or count in whole numbers",
    "exclusiveMinimum": "check it by a rule as well, or count in whole numbers",
    "exclusiveMaximum": "check it by a rule as well, or count in whole numbers",
    "items: false": "write `maxItems` instead",
    "items beside prefixItems": "make the first items properties of their own",
    "type array without items": "add `items: {type: ...}`",
    "properties with one that is false": "leave it out, and write `additionalProperties: false`",
    "required of a name that is not in properties": "give the name a schema in `properties`",
    "minProperties": "put the names into `required`, or check it by a rule",
    "maxProperties": "name the `properties`, or check it by a rule",
    "oneOf told apart by bounds": "write `anyOf`",
    "oneOf with branches that overlap": "write `anyOf`, or tell the branches apart by a required `const`",
    "allOf with several branches": "write all their keywords into one schema",
    "allOf of what is no object": "write its keywords into the schema itself",
    "enum beside other constraints": "leave only the values that fit in the `enum`",
    **{f"{keyword} beside other constraints": _BESIDE for keyword in ("anyOf", "oneOf", "allOf", "$ref")},
    "$ref to the root": "put the schema into `$defs`, and refer to `#/$defs/NAME`",
    "$ref to an anchor": "refer to `#/$defs/NAME`",
    "$dynamicRef": "write `$ref: '#/$defs/NAME'`",
}


def remedy_for(form: str) -> str:
    """By the form, or else by its keyword."""
    if form.endswith("without a type") and not form.startswith(("uniqueItems", "contains")):
        return _TYPE
    odd = {"with a fraction": "write a whole number", "beyond 64 bits": "write a smaller bound"}
    for ending, remedy in odd.items():
        if form.endswith(ending):
            return remedy
    return REMEDIES.get(form) or REMEDIES.get(form.split(" ")[0].rstrip(":,")) or "check it by a rule"
