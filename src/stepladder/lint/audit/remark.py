"""One thing to say about a schema, before it is known where in a document the schema stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stepladder.schemas.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepladder.schemas.pointer import Path


class Role(StrEnum):
    """Who writes the values: a decoder under this schema, a model that was only told, or people and other programs."""

    DECODED = "decoded"
    PROMPTED = "prompted"
    HANDED_IN = "handed_in"


@dataclass(frozen=True, slots=True)
class Remark:
    """``path`` leads through the schema to what is meant."""

    code: str
    path: Path
    message: str
    remedy: str
    severity: Severity = Severity.WARNING


def quoted(words: Iterable[object]) -> str:
    """Words of a document, as a sentence shows them."""
    return ", ".join(f"`{word}`" for word in words)
