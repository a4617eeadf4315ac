"""The drafts of JSON Schema that a schema may be written in, and the words of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonschema
import jsonschema_rs

from stepladder.schemas.answer import Violation
from stepladder.schemas.pointer import pointer
from stepladder.validation.schema_errors import reason

if TYPE_CHECKING:
    from collections.abc import Mapping


SINCE: Mapping[str, int] = {
    **dict.fromkeys(("const", "contains", "propertyNames", "examples"), 6),
    **dict.fromkeys(("if", "then", "else", "$comment", "readOnly", "writeOnly"), 7),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), 7),
    **dict.fromkeys(("$anchor", "$vocabulary", "$recursiveRef", "$recursiveAnchor"), 2019),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "deprecated", "contentSchema"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), 2020),
}
"""Keywords by the draft that introduced them; all others are older."""


@dataclass(frozen=True, slots=True)
class Draft:
    """``number`` orders the drafts: 4, 6, 7, 2019, 2020. ``uri`` names one in ``$schema``."""

    number: int
    name: str
    uri: str
    validator: Any
    """The class of ``jsonschema_rs``, which validates."""
    described: Any
    """The class of ``jsonschema``, which says where a schema breaks the metaschema."""

    @property
    def id(self) -> str:
        """The keyword that gives a part its URI."""
        return "id" if self.number == 4 else "$id"

    def has(self, keyword: str) -> bool:
        """False for a keyword that only another draft has."""
        return SINCE.get(keyword, 0) <= self.number and (self.number == 2019 or not keyword.startswith("$recursive"))

    def is_own(self, uri: str) -> bool:
        """Whether a URI is that of the draft's metaschema, which the validator has without a network."""
        return uri == self.uri.rstrip("#") or uri.startswith(self.uri.replace("/schema", "/meta/"))

    def faults(self, schema: Any) -> list[Violation]:
        """What the draft does not allow in a schema, which is in plain dicts and lists."""
        named = schema | {"$schema": self.uri} if isinstance(schema, dict) else schema
        if jsonschema_rs.meta.is_valid(named):  # a hundred times faster; the other library has errors to describe
            return []
        # No format checker: it checks `regex` in Python's dialect, and patterns are ECMA's.
        errors = self.described(self.described.META_SCHEMA).iter_errors(schema)
        return [Violation(pointer(one.absolute_path), _reason(one), str(one.validator)) for one in errors]


DRAFTS = (
    Draft(4, "draft 4", "http://json-schema.org/draft-04/schema#",
          jsonschema_rs.Draft4Validator, jsonschema.Draft4Validator),
    Draft(6, "draft 6", "http://json-schema.org/draft-06/schema#",
          jsonschema_rs.Draft6Validator, jsonschema.Draft6Validator),
    Draft(7, "draft 7", "http://json-schema.org/draft-07/schema#",
          jsonschema_rs.Draft7Validator, jsonschema.Draft7Validator),
    Draft(2019, "draft 2019-09", "https://json-schema.org/draft/2019-09/schema",
          jsonschema_rs.Draft201909Validator, jsonschema.Draft201909Validator),
    Draft(2020, "draft 2020-12", "https://json-schema.org/draft/2020-12/schema",
          jsonschema_rs.Draft202012Validator, jsonschema.Draft202012Validator),
)  # fmt: skip
LATEST = DRAFTS[-1]


def _reason(error: jsonschema.ValidationError) -> str:
    if error.context:
        return "; or ".join(_reason(inner) for inner in error.context)
    return reason(str(error.validator), error.validator_value, error.instance)


def _key(uri: str) -> str:
    return uri.strip().rstrip("#").removeprefix("https").removeprefix("http")


_BY_KEY = {_key(draft.uri): draft for draft in DRAFTS}


def draft_named(uri: str) -> Draft | None:
    """By the value of ``$schema``, with ``http`` or ``https``, with or without ``#``. None if it is none of ours."""
    return _BY_KEY.get(_key(uri))
