"""The forms of keywords in a schema, as far as engines treat the forms differently.

An engine may enforce ``pattern`` and ignore it without a ``type``, or refuse it with a look-around. So ``tables.toml``
lists forms, and a form is a short phrase that begins with its keyword.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import own_kinds
from stepladder.lint.audit.regex import traits_of
from stepladder.lint.audit.vocabulary import BOUNDS, CONSTRAINTS, KINDS_OF, properties_of, required_of
from stepladder.lint.backends.branches import Overlap, overlap

if TYPE_CHECKING:
    from stepladder.lint.audit.kinds import KindReader
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

OVERLAP = "oneOf with branches that overlap"
ONE_FORM = frozenset({"type", "enum", "const", "properties", "required", "prefixItems", "additionalProperties"})
ONE_FORM |= {"dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"}
ONE_FORM |= {"not", "if", "anyOf", "$ref", "$dynamicRef"}
"""Keywords that engines treat alike with a ``type`` beside them and without."""
BY_TYPE = frozenset({"minLength", "maxLength", "minProperties", "maxProperties", "minItems", "maxItems"})
BY_TYPE |= {"contains", "uniqueItems", "patternProperties", "propertyNames"}
MOST_REPEATED = 2000
"""llama.cpp takes 2,000 repetitions of a grammar's rule and refuses more where a minimum asks for them."""
INTEGERS = 2**63
MAX_BRANCHES = 20  # that are compared with each other: 190 pairs, some 0.3 s with long enums
BESIDE = ("enum", "anyOf", "oneOf", "allOf", "$ref")


@dataclass(frozen=True, slots=True)
class Found:
    """A form, and the path of its keyword."""

    form: str
    path: Path


def forms_of(subschemas: Subschemas, kinds: KindReader) -> Iterator[Found]:
    """Every form in the schema."""
    for path, schema in subschemas.objects.items():
        own = own_kinds(schema)
        for keyword in schema:
            for form in _forms_of_keyword(keyword, schema, own):
                yield Found(form, (*path, keyword))
        for keyword, form in (*_beside(schema), *_of_values(schema, own), *_of_objects(schema)):
            yield Found(form, (*path, keyword))
        if isinstance(together := schema.get("allOf"), Sequence) and together:
            yield Found(
                "allOf with several branches" if len(together) > 1 else "allOf with one branch", (*path, "allOf")
            )
            if (known := kinds.of(path)) is not None and "object" not in known:
                yield Found("allOf of what is no object", (*path, "allOf"))
        if isinstance(branches := schema.get("oneOf"), Sequence) and branches:
            paths = [(*path, "oneOf", index) for index in range(min(len(branches), MAX_BRANCHES))]
            yield Found(_one_of(paths, subschemas, kinds), (*path, "oneOf"))


def _forms_of_keyword(keyword: str, schema: Mapping[str, Any], own: frozenset[str]) -> Iterator[str]:
    typed = bool(own & KINDS_OF.get(keyword, frozenset()))
    if keyword in ONE_FORM or (keyword in BY_TYPE and typed):
        yield keyword
    elif keyword in BY_TYPE:
        yield f"{keyword} without a type"
    elif keyword == "format":
        yield f"format {schema['format']}" if typed else "format without a type"
    elif keyword in (*BOUNDS, "multipleOf"):
        kind = "of a number" if "number" in own else "of an integer" if "integer" in own else "without a type"
        yield f"{keyword} {kind}"
    elif keyword == "items":
        yield "items: false" if schema["items"] is False else "items"
    elif keyword == "pattern":
        yield from _pattern(schema["pattern"], typed=typed)


def _pattern(pattern: Any, *, typed: bool) -> Iterator[str]:
    if not typed:
        yield "pattern without a type"
    if not isinstance(pattern, str):
        return
    traits = traits_of(pattern)
    forms = {
        "pattern with a look-around": traits.look_around,
        "pattern with a back-reference": traits.back_reference,
        "pattern with a word boundary": traits.word_boundary,
        "pattern with a Unicode property": traits.unicode_property,
        "pattern with \\d, \\w or \\s": traits.shorthand,
        "pattern, not anchored": not traits.anchored,
    }
    yield from (form for form, has in forms.items() if has)
    if typed and not any(forms.values()):
        yield "pattern"


def _beside(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for keyword in ("minLength", "maxLength"):
        other = next((word for word in ("pattern", "format") if word in schema), None)
        if keyword in schema and other is not None:
            yield keyword, f"{keyword} beside {other}"
    for keyword in BESIDE:
        if keyword in schema and any(word in CONSTRAINTS and word not in ("type", keyword) for word in schema):
            yield keyword, f"{keyword} beside other constraints"


def _of_values(schema: Mapping[str, Any], own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Numbers in keywords, and arrays."""
    for keyword in BOUNDS:
        bound = schema.get(keyword)
        if "integer" not in own or not isinstance(bound, int | float):
            continue
        if isinstance(bound, float) and not bound.is_integer():
            yield keyword, f"{keyword} of an integer, with a fraction"
        elif abs(bound) >= INTEGERS:
            yield keyword, f"{keyword} of an integer, beyond 64 bits"
    for keyword in ("minItems", "minLength"):
        least = schema.get(keyword)
        if isinstance(least, int | float) and least > MOST_REPEATED:
            yield keyword, f"{keyword} above {MOST_REPEATED}"
    if "array" in own and not {"items", "prefixItems", "const", *BESIDE} & set(schema):
        yield "type", "type array without items"
    if schema.get("prefixItems") and isinstance(schema.get("items"), Mapping):
        yield "items", "items beside prefixItems"


def _of_objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Properties, and references."""
    properties = properties_of(schema)
    if any(one is False for one in properties.values()):
        yield "properties", "properties with one that is false"
    if any(name not in properties for name in required_of(schema)):
        yield "required", "required of a name that is not in properties"
    by_pattern = schema.get("patternProperties")
    if isinstance(by_pattern, Mapping) and by_pattern and (properties or len(by_pattern) > 1):
        yield "patternProperties", "patternProperties beside further properties"
    if "propertyNames" in schema and ("properties" in schema or "patternProperties" in schema):
        yield "propertyNames", "propertyNames beside properties"
    elif "propertyNames" in schema and isinstance(schema.get("additionalProperties"), Mapping):
        yield "propertyNames", "propertyNames beside additionalProperties"
    target = schema.get("$ref")
    if target == "#":
        yield "$ref", "$ref to the root"
    elif isinstance(target, str) and not target.startswith("#/"):
        yield "$ref", "$ref to an anchor"


def _one_of(branches: Sequence[Path], subschemas: Subschemas, kinds: KindReader) -> str:
    by_bounds = False
    for one, other in combinations(branches, 2):
        found = overlap(one, other, subschemas, kinds)
        if found is Overlap.POSSIBLE:
            return OVERLAP
        by_bounds = by_bounds or found is Overlap.EXCLUDED_BY_BOUNDS
    return "oneOf told apart by bounds" if by_bounds else "oneOf"
