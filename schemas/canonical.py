"""One spelling for each JSON value (RFC 8785), and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rfc8785

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

# RFC 8785 writes numbers as IEEE doubles do; beyond this an integer has no spelling of its own.
EXACT_INTEGER = 2**53 - 1


def canonical(value: Json) -> bytes:
    """The canonical UTF-8 spelling. Raises ``rfc8785.CanonicalizationError`` for what is not JSON, such as NaN."""
    return rfc8785.dumps(_as_doubles(value))


def content_hash(value: Json) -> str:
    """SHA-256 of the canonical spelling, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _as_doubles(value: Json) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_INTEGER:
        return float(value)
    if isinstance(value, Mapping):
        return {name: _as_doubles(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_doubles(item) for item in value]
    return value


def exact_hash(value: Json) -> str:
    """SHA-256 of the JSON with its names sorted and integers exact at any size, as 64 hexadecimal digits.

    For what must never be taken for something else, such as the arguments behind an idempotency key: RFC 8785 spells
    9007199254740993 and 9007199254740992 alike.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
