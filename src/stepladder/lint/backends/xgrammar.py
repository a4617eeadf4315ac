"""xgrammar inside vLLM 0.27.1 to 0.33: what becomes of each form.

Two programs speak here. vLLM looks at a schema first and refuses what it lists as unsupported: read from its
``has_xgrammar_unsupported_json_features`` and run on a schema of each form, of 0.27.1, 0.28, 0.29, 0.30, 0.31, 0.32 and
0.33. What passes goes to the library: measured byte by byte on conforming and violating documents with xgrammar 0.2.3
(which was measured with 0.27.1), 0.2.7 (which 0.31 pins) and 0.2.8 (which 0.32 and 0.33 pin), strictly, as vLLM calls
it: an object without ``additionalProperties`` is closed, and a list without ``items`` is empty.
"""

from __future__ import annotations

from stepladder.lint.audit.vocabulary import BOUNDS
from stepladder.lint.backends.verdicts import Said, Verdict, Version

E, I, R, N = Verdict.ENFORCED, Verdict.IGNORED, Verdict.REFUSED, Verdict.NARROWED  # noqa: E741 -- a table is read by eye
OLDEST: Version = (0, 27, 1)
NEWEST: Version = (0, 33)

_LENGTH: Said = {OLDEST: I, (0, 29): R}
_FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"]
_FORMATS += ["uri-reference", "uri-template", "json-pointer", "relative-json-pointer"]

TABLE: dict[str, Said] = {
    **dict.fromkeys(("type", "enum", "const", "properties", "required", "additionalProperties"), E),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "pattern with \\d, \\w or \\s"), E),
    **dict.fromkeys(("minLength without a type", "maxLength without a type", "pattern without a type"), I),
    **dict.fromkeys(("minLength beside pattern", "maxLength beside pattern"), _LENGTH),
    **dict.fromkeys(("minLength beside format", "maxLength beside format"), _LENGTH),
    "minLength above 2000": E,
    "pattern, not anchored": N,
    "pattern with a look-around": {OLDEST: R, (0, 31): I},
    "pattern with a back-reference": R,
    "pattern with a word boundary": R,
    "pattern with a Unicode property": R,
    **{f"format {name}": E for name in _FORMATS},
    "format": R,
    "format without a type": I,
    **{f"{bound} {of}": E for bound in BOUNDS for of in ("of an integer", "of a number")},
    **{f"{bound} without a type": I for bound in BOUNDS},
    **{f"{bound} of an integer, {odd}": R for bound in BOUNDS for odd in ("with a fraction", "beyond 64 bits")},
    **dict.fromkeys(("multipleOf of an integer", "multipleOf of a number"), R),
    "multipleOf without a type": I,
    **dict.fromkeys(("items", "items: false", "items beside prefixItems", "prefixItems", "minItems", "maxItems"), E),
    "minItems above 2000": E,
    "type array without items": N,
    **dict.fromkeys(("minItems without a type", "maxItems without a type"), I),
    **dict.fromkeys(("uniqueItems", "contains"), R),
    **dict.fromkeys(("uniqueItems without a type", "contains without a type"), I),
    "unevaluatedItems": E,
    "properties with one that is false": R,
    "required of a name that is not in properties": I,
    "patternProperties": {OLDEST: R, (0, 30): E},
    "patternProperties beside further properties": R,
    "patternProperties without a type": I,
    "propertyNames": {OLDEST: R, (0, 30): E},
    "propertyNames beside additionalProperties": {OLDEST: R, (0, 32): E},
    "propertyNames beside properties": R,
    "propertyNames without a type": I,
    **dict.fromkeys(("minProperties", "maxProperties", "unevaluatedProperties"), E),
    **dict.fromkeys(("minProperties without a type", "maxProperties without a type"), I),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "not", "if"), I),
    **dict.fromkeys(("anyOf", "oneOf", "oneOf told apart by bounds", "allOf with one branch"), E),
    "oneOf with branches that overlap": I,
    "allOf with several branches": {OLDEST: I, (0, 32): R},
    "allOf of what is no object": E,
    **dict.fromkeys(("anyOf beside other constraints", "oneOf beside other constraints"), I),
    **dict.fromkeys(("allOf beside other constraints", "$ref beside other constraints"), I),
    "enum beside other constraints": I,
    **dict.fromkeys(("$ref", "$ref to the root"), E),
    **dict.fromkeys(("$ref to an anchor", "$dynamicRef"), I),
}
