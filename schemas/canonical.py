"""When two JSON values are the same, and a canonical spelling (RFC 8785) and hashes that follow from it.

A JSON number has no type: 36 and 36.0 are the same, and so are objects whose names come in another order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rfc8785

from stepladder.schemas.jsontypes import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from stepladder.schemas.jsontypes import Json

# RFC 8785 writes numbers as IEEE doubles; a larger integer has no distinct representation.
EXACT_INTEGER = 2**53 - 1


def identity(value: Any, spend: Callable[[int], None] = lambda _: None) -> Hashable:
    """A hashable stand-in, equal for the same JSON value and for no other. ``spend`` is called for each step."""
    spend(1)
    if isinstance(value, Mapping):
        return "object", frozenset((name, identity(item, spend)) for name, item in value.items())
    if isinstance(value, str):
        spend(len(value) // 100)
        return "string", value
    if isinstance(value, Sequence):
        return "array", tuple(identity(item, spend) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", value
    return type(value), value


def canonical(value: Json) -> bytes:
    """The canonical UTF-8 form. Raises ``rfc8785.CanonicalizationError`` for anything that is not JSON, such as NaN."""
    return rfc8785.dumps(plain(value, _as_double))


def content_hash(value: Json) -> str:
    """SHA-256 of the canonical spelling, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def exact_hash(value: Json) -> str:
    """SHA-256 of the value, as 64 hexadecimal digits: the same for the same JSON value, with integers of any size.

    For what must never be confused, such as the arguments behind an idempotency key: RFC 8785 spells
    9007199254740993 and 9007199254740992 alike.
    """
    spelled = json.dumps(plain(value, _as_integer), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(spelled.encode()).hexdigest()


def _as_double(value: Any) -> Any:
    beyond = isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_INTEGER
    return float(value) if beyond else value


def _as_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
