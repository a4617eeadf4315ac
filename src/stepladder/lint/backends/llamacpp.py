"""llama.cpp's own grammars, build 11549 (the wheel xllamacpp 2026.10.11549): what becomes of each form.

Measured on that server with SmolLM2: the grammar that it made of each schema for a chat completion was read back from
its verbose answer, and conforming and violating documents were held against it, byte by byte. Builds come several a
day, so that all of them share the one table, and the figure is the one build's.
"""

from __future__ import annotations

from stepladder.lint.audit.vocabulary import BOUNDS
from stepladder.lint.backends.verdicts import Said, Verdict, Version

E, I, R, N = Verdict.ENFORCED, Verdict.IGNORED, Verdict.REFUSED, Verdict.NARROWED  # noqa: E741 -- a table is read by eye
OLDEST: Version = (0,)
NEWEST: Version = (11549,)

_FORMATS = ("date", "time", "date-time", "uuid")

TABLE: dict[str, Said] = {
    **dict.fromkeys(("type", "enum", "const", "properties", "required", "additionalProperties"), E),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), E),
    **dict.fromkeys(("minLength without a type", "maxLength without a type", "pattern without a type"), E),
    **dict.fromkeys(("minLength beside pattern", "maxLength beside pattern"), I),
    **dict.fromkeys(("minLength beside format", "maxLength beside format"), E),
    "minLength above 2000": R,
    **dict.fromkeys(("pattern, not anchored", "pattern with a Unicode property", "pattern with \\d, \\w or \\s"), I),
    **dict.fromkeys(("pattern with a look-around", "pattern with a back-reference"), I),
    "pattern with a word boundary": I,
    **{f"format {name}": E for name in _FORMATS},
    "format": I,
    "format without a type": E,
    **{f"{bound} of an integer": E for bound in BOUNDS},
    **{f"{bound} of a number": I for bound in BOUNDS},
    **{f"{bound} without a type": I for bound in BOUNDS},
    **{f"{bound} of an integer, with a fraction": E for bound in BOUNDS},
    **{f"{bound} of an integer, beyond 64 bits": I if bound == "maximum" else E for bound in BOUNDS},
    **{f"multipleOf {of}": I for of in ("of an integer", "of a number", "without a type")},
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "type array without items"), E),
    **dict.fromkeys(("items: false", "minItems above 2000"), R),
    "items beside prefixItems": I,
    **dict.fromkeys(("minItems without a type", "maxItems without a type"), I),
    **dict.fromkeys(("uniqueItems", "contains", "uniqueItems without a type", "contains without a type"), I),
    "unevaluatedItems": E,
    "properties with one that is false": R,
    "required of a name that is not in properties": I,
    **dict.fromkeys(("patternProperties", "patternProperties beside further properties"), N),
    "patternProperties without a type": I,
    **dict.fromkeys(("propertyNames", "propertyNames beside additionalProperties"), I),
    **dict.fromkeys(("propertyNames beside properties", "propertyNames without a type"), I),
    **dict.fromkeys(("minProperties", "maxProperties"), I),
    **dict.fromkeys(("minProperties without a type", "maxProperties without a type"), I),
    "unevaluatedProperties": E,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "not", "if"), I),
    **dict.fromkeys(("anyOf", "oneOf", "oneOf told apart by bounds"), E),
    "oneOf with branches that overlap": I,
    **dict.fromkeys(("allOf with one branch", "allOf with several branches"), E),
    "allOf of what is no object": I,
    **dict.fromkeys(("anyOf beside other constraints", "oneOf beside other constraints"), I),
    **dict.fromkeys(("allOf beside other constraints", "$ref beside other constraints"), I),
    "enum beside other constraints": I,
    "$ref": E,
    **dict.fromkeys(("$ref to the root", "$ref to an anchor"), R),
    "$dynamicRef": I,
}
