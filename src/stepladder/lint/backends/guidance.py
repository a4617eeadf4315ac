"""guidance (llguidance) inside vLLM 0.27.1 to 0.33, all of which ask for llguidance 1.7: what becomes of each form.

Measured byte by byte on conforming and violating documents with llguidance 1.7.6, and again with 1.9.1, which differs
in no form that stands here. What it does not know it refuses, and it never ignores a keyword in silence.
"""

from __future__ import annotations

from stepladder.lint.audit.vocabulary import BOUNDS
from stepladder.lint.backends.verdicts import Said, Verdict, Version

E, R = Verdict.ENFORCED, Verdict.REFUSED
OLDEST: Version = (0, 27, 1)
NEWEST: Version = (0, 33)

_FORMATS = ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")

TABLE: dict[str, Said] = {
    **dict.fromkeys(("type", "enum", "const", "properties", "required", "additionalProperties"), E),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "pattern with \\d, \\w or \\s"), E),
    **dict.fromkeys(("minLength without a type", "maxLength without a type", "pattern without a type"), E),
    **dict.fromkeys(("minLength beside pattern", "maxLength beside pattern"), E),
    **dict.fromkeys(("minLength beside format", "maxLength beside format"), E),
    "minLength above 2000": E,
    **dict.fromkeys(("pattern, not anchored", "pattern with a Unicode property"), E),
    **dict.fromkeys(("pattern with a look-around", "pattern with a back-reference"), R),
    "pattern with a word boundary": R,
    **{f"format {name}": E for name in _FORMATS},
    "format": R,
    "format without a type": E,
    **{f"{bound} of an integer": E for bound in BOUNDS},
    **{f"{bound} of a number": E for bound in BOUNDS},
    **{f"{bound} without a type": E for bound in BOUNDS},
    **{f"{bound} of an integer, with a fraction": E for bound in BOUNDS},
    **{f"{bound} of an integer, beyond 64 bits": R if "inimum" in bound else E for bound in BOUNDS},
    **{f"multipleOf {of}": E for of in ("of an integer", "of a number", "without a type")},
    **dict.fromkeys(("items", "items: false", "items beside prefixItems", "prefixItems", "minItems", "maxItems"), E),
    "minItems above 2000": E,
    "type array without items": E,
    **dict.fromkeys(("minItems without a type", "maxItems without a type"), E),
    **dict.fromkeys(("uniqueItems", "contains", "uniqueItems without a type", "contains without a type"), R),
    "unevaluatedItems": R,
    "properties with one that is false": E,
    "required of a name that is not in properties": E,
    **dict.fromkeys(("patternProperties", "patternProperties beside further properties"), E),
    "patternProperties without a type": E,
    **dict.fromkeys(("propertyNames", "propertyNames beside additionalProperties"), R),
    **dict.fromkeys(("propertyNames beside properties", "propertyNames without a type"), R),
    **dict.fromkeys(("minProperties", "maxProperties"), E),
    **dict.fromkeys(("minProperties without a type", "maxProperties without a type"), E),
    "unevaluatedProperties": R,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "not", "if"), R),
    **dict.fromkeys(("anyOf", "oneOf"), E),
    **dict.fromkeys(("oneOf told apart by bounds", "oneOf with branches that overlap"), R),
    **dict.fromkeys(("allOf with one branch", "allOf with several branches", "allOf of what is no object"), E),
    **dict.fromkeys(("anyOf beside other constraints", "oneOf beside other constraints"), E),
    **dict.fromkeys(("allOf beside other constraints", "$ref beside other constraints"), E),
    "enum beside other constraints": E,
    **dict.fromkeys(("$ref", "$ref to the root", "$ref to an anchor"), E),
    "$dynamicRef": R,
}
