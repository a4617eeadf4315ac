"""In which forms keywords stand in a schema, as far as engines tell the forms apart.

An engine may obey ``pattern`` and ignore it without a ``type``, or refuse it with a look-around in it. So what is known
of engines is known of forms, and a form is a short phrase that begins with its keyword.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import own_kinds
from stepladder.lint.audit.regex import traits_of
from stepladder.lint.audit.vocabulary import BOUNDS, CONSTRAINTS, KINDS_OF
from stepladder.lint.backends.branches import told_apart

if TYPE_CHECKING:
    from stepladder.lint.audit.kinds import KindReader
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

LENGTHS = ("minLength", "maxLength")
MOST_REPEATED = 2000
"""llama.cpp takes 2,000 repetitions of a grammar's rule and refuses more where a minimum asks for them."""
INTEGERS = 2**63
MOST_BRANCHES = 20  # which are compared with each other: 190 pairs, some 0.3 s with long enums
_BESIDE = ("enum", "anyOf", "oneOf", "allOf", "$ref")


@dataclass(frozen=True, slots=True)
class Found:
    """A form at a place: ``path`` leads to the keyword."""

    form: str
    path: Path

    @property
    def keyword(self) -> str:
        return self.form.split(" ")[0].rstrip(":,")


def forms_of(subschemas: Subschemas, kinds: KindReader) -> Iterator[Found]:
    """Every form in the schema, each at its place."""
    for path, schema in subschemas.by_path.items():
        if isinstance(schema, Mapping):
            for keyword, form in _forms(path, schema, subschemas, kinds):
                yield Found(form, (*path, keyword))


def _forms(
    path: Path, schema: Mapping[str, Any], subschemas: Subschemas, kinds: KindReader
) -> Iterator[tuple[str, str]]:
    own = own_kinds(schema)
    for keyword in schema:
        typed = bool(own & KINDS_OF.get(keyword, frozenset()))
        match keyword:
            case "minLength" | "maxLength" | "minProperties" | "maxProperties" | "minItems" | "maxItems":
                yield keyword, keyword if typed else f"{keyword} without a type"
            case "pattern":
                yield from ((keyword, form) for form in _pattern(schema, typed=typed))
            case "format":
                name = schema["format"]
                yield keyword, f"format {name}" if typed else "format without a type"
            case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
                yield keyword, f"{keyword} {_of_number(own)}"
            case "contains" | "uniqueItems" | "patternProperties" | "propertyNames":
                yield keyword, keyword if typed else f"{keyword} without a type"
            case "type" | "enum" | "const" | "properties" | "required" | "prefixItems" | "additionalProperties":
                yield keyword, keyword
            case "dependentRequired" | "dependentSchemas" | "unevaluatedItems" | "unevaluatedProperties":
                yield keyword, keyword
            case "not" | "if" | "anyOf" | "$ref" | "$dynamicRef":
                yield keyword, keyword
            case "items":
                yield keyword, "items: false" if schema["items"] is False else "items"
    yield from _beside(schema)
    yield from _bounds(schema, own)
    yield from _list(schema, own)
    yield from _object(schema)
    yield from _reference(schema)
    yield from _branches(path, schema, subschemas, kinds)


def _of_number(own: frozenset[str]) -> str:
    if "number" in own:
        return "of a number"
    return "of an integer" if "integer" in own else "without a type"


def _pattern(schema: Mapping[str, Any], *, typed: bool) -> Iterator[str]:
    pattern = schema["pattern"]
    if not typed:
        yield "pattern without a type"
    if not isinstance(pattern, str):
        return
    traits = traits_of(pattern)
    odd = {
        "pattern with a look-around": traits.look_around,
        "pattern with a back-reference": traits.back_reference,
        "pattern with a word boundary": traits.word_boundary,
        "pattern with a Unicode property": traits.unicode_property,
        "pattern with \\d, \\w or \\s": traits.shorthand,
        "pattern, not anchored": not traits.anchored,
    }
    found = [form for form, has in odd.items() if has]
    yield from found
    if typed and not found:
        yield "pattern"


def _beside(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for keyword in LENGTHS:
        if keyword in schema and "pattern" in schema:
            yield keyword, f"{keyword} beside pattern"
        elif keyword in schema and "format" in schema:
            yield keyword, f"{keyword} beside format"
    for keyword in _BESIDE:
        others = [word for word in schema if word in CONSTRAINTS and word not in ("type", keyword)]
        if keyword in schema and others:
            yield keyword, f"{keyword} beside other constraints"


def _bounds(schema: Mapping[str, Any], own: frozenset[str]) -> Iterator[tuple[str, str]]:
    for keyword in BOUNDS:
        bound = schema.get(keyword)
        if "integer" not in own or not isinstance(bound, int | float):
            continue
        if isinstance(bound, float) and not bound.is_integer():
            yield keyword, f"{keyword} of an integer, with a fraction"
        elif abs(bound) >= INTEGERS:
            yield keyword, f"{keyword} of an integer, beyond 64 bits"


def _list(schema: Mapping[str, Any], own: frozenset[str]) -> Iterator[tuple[str, str]]:
    if "array" in own and not {"items", "prefixItems", "const", *_BESIDE} & set(schema):
        yield "type", "type array without items"
    if schema.get("prefixItems") and isinstance(schema.get("items"), Mapping):
        yield "items", "items beside prefixItems"
    for keyword in ("minItems", "minLength"):
        least = schema.get(keyword)
        if isinstance(least, int | float) and least > MOST_REPEATED:
            yield keyword, f"{keyword} above {MOST_REPEATED}"


def _object(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    names = properties if isinstance(properties, Mapping) else {}
    if any(one is False for one in names.values()):
        yield "properties", "properties with one that is false"
    required = schema.get("required")
    if isinstance(required, list) and any(isinstance(name, str) and name not in names for name in required):
        yield "required", "required of a name that is not in properties"
    several = schema.get("patternProperties")
    if isinstance(several, Mapping) and several and (names or len(several) > 1):
        yield "patternProperties", "patternProperties beside further properties"
    if "propertyNames" in schema and ("properties" in schema or "patternProperties" in schema):
        yield "propertyNames", "propertyNames beside properties"
    elif "propertyNames" in schema and isinstance(schema.get("additionalProperties"), Mapping):
        yield "propertyNames", "propertyNames beside additionalProperties"


def _reference(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    target = schema.get("$ref")
    if target == "#":
        yield "$ref", "$ref to the root"
    elif isinstance(target, str) and not target.startswith("#/"):
        yield "$ref", "$ref to an anchor"


def _branches(
    path: Path, schema: Mapping[str, Any], subschemas: Subschemas, kinds: KindReader
) -> Iterator[tuple[str, str]]:
    together = schema.get("allOf")
    if isinstance(together, Sequence) and together:
        yield "allOf", "allOf with several branches" if len(together) > 1 else "allOf with one branch"
        said = kinds.of(path)
        if said is not None and "object" not in said:
            yield "allOf", "allOf of what is no object"
    one_of = schema.get("oneOf")
    if isinstance(one_of, Sequence) and one_of:
        worst = "oneOf"
        branches = [(*path, "oneOf", index) for index in range(len(one_of))]
        for one, other in combinations(branches[:MOST_BRANCHES], 2):
            apart = told_apart(one, other, subschemas, kinds)
            if apart is None:
                worst = "oneOf with branches that overlap"
                break
            worst = "oneOf told apart by bounds" if apart == "bounds" else worst
        yield "oneOf", worst
