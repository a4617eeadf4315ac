"""Bounds that leave no value at all. They are legal JSON Schema, and an engine may never finish under them: llama.cpp
was seen to hang for good on ``{"minItems": 5, "maxItems": 2}``, with all its other requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.validation.subschemas import Subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
)
EXCLUSIVE = (("minimum", "exclusiveMaximum"), ("exclusiveMinimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum"))


def contradictions(schema: Json) -> Iterator[tuple[Path, str]]:
    """Each pair of bounds that excludes every value: the path of the lower one, and what is wrong."""
    for path, part in Subschemas(schema).objects.items():
        for low, high in PAIRS + EXCLUSIVE:
            least, most = part.get(low), part.get(high)
            if not isinstance(least, int | float) or not isinstance(most, int | float):
                continue
            if least > most or ((low, high) in EXCLUSIVE and least == most):
                yield (*path, low), f"leaves no value: {low} is {least}, and {high} is {most}"
