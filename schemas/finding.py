"""One finding about a workflow document: where, what, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Severity(StrEnum):
    """A document with an error is refused. Warnings and hints, which matter less, do not refuse it."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Finding:
    """``pointer`` is a JSON pointer into the document; ``line`` and ``column`` count from 1 where the text is known."""

    code: str
    pointer: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}, " if self.line is not None else ""
        text = f"{place}{self.pointer or '/'}: {self.message}"
        return f"{text}\n    {self.remedy}" if self.remedy else text


class BadDocumentError(BadInputError):
    """A workflow document that cannot be used. ``findings`` holds every error at once."""

    def __init__(self, name: str, findings: Sequence[Finding]) -> None:
        count = f"{len(findings)} error" + ("" if len(findings) == 1 else "s")
        super().__init__(f"{name} has {count}:\n" + "\n".join(f"  {finding}" for finding in findings))
        self.findings = tuple(findings)
