"""A finding on a schema, before its place in a document is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stepladder.schemas.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepladder.schemas.pointer import Path


class Role(StrEnum):
    """Who writes the values: a model under a decoder, a model that only has the prompt, or people and programs."""

    DECODED = "decoded"
    PROMPTED = "prompted"
    HANDED_IN = "handed_in"


@dataclass(frozen=True, slots=True)
class Remark:
    """``path`` is that of the keyword or schema that it is about."""

    code: str
    path: Path
    message: str
    remedy: str
    severity: Severity = Severity.WARNING


def quoted(words: Iterable[object]) -> str:
    """Words of a document in a sentence."""
    return ", ".join(f"`{word}`" for word in words)
