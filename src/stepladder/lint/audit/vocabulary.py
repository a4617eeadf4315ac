"""The keywords of JSON Schema, draft 2020-12, and common mistakes for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

Kinds: TypeAlias = frozenset[str]

TEXT: Kinds = frozenset({"string"})
NUMBER: Kinds = frozenset({"integer", "number"})
LIST: Kinds = frozenset({"array"})
OBJECT: Kinds = frozenset({"object"})

BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
KINDS_OF: Mapping[str, Kinds] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), TEXT),
    **dict.fromkeys((*BOUNDS, "multipleOf"), NUMBER),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), LIST),
    **dict.fromkeys(("contains", "minContains", "maxContains", "unevaluatedItems"), LIST),
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), OBJECT),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), OBJECT),
    "unevaluatedProperties": OBJECT,
}
"""What a keyword constrains: a value of any other kind passes it."""

CONTENT = ("contentEncoding", "contentMediaType", "contentSchema")
EVERYWHERE = ("type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef")
CORE = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment", "$defs", "definitions")
ANNOTATIONS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
KNOWN = frozenset((*KINDS_OF, *CONTENT, *EVERYWHERE, *CORE, *ANNOTATIONS))
CONSTRAINTS = frozenset((*KINDS_OF, *EVERYWHERE)) - {"then", "else"}

MEANT: Mapping[str, str] = {
    "nullable": "write `type: [string, 'null']`, with the type that it has",
    "optional": "leave its name out of `required`",
    "min": "write `minimum`, `minLength` or `minItems`",
    "max": "write `maximum`, `maxLength` or `maxItems`",
    "length": "write `minLength` and `maxLength`",
    "size": "write `minItems` and `maxItems`",
    "regex": "write `pattern`",
    "choices": "write `enum`",
    "options": "write `enum`",
    "values": "write `enum`",
    "one_of": "write `oneOf`",
    "any_of": "write `anyOf`",
    "example": "write `examples: [...]`",
    "id": "write `$id`",
    "additionalItems": "write `prefixItems` for the first items, and `items` for the rest",
    "dependencies": "write the cases as branches of `anyOf`, each with its own `const`",
    "discriminator": "give each branch a required property with a distinct `const`",
}
"""Keywords of older drafts, of OpenAPI and of other languages."""

BOUNDED_FORMATS = frozenset({"date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6"})
"""Formats whose strings are short."""

FORMATS = BOUNDED_FORMATS | {"email", "idn-email", "hostname", "idn-hostname", "uri", "uri-reference", "uri-template"}
FORMATS |= {"iri", "iri-reference", "json-pointer", "relative-json-pointer", "regex"}
"""What the schema rung checks."""


def properties_of(schema: Json) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def required_of(schema: Json) -> list[str]:
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
