"""How values stand in a rendered text, and what one rendering may cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepladder.validation.jsonmath import EvaluationError, is_list, is_number, kind

# A model's context is some 128,000 tokens, about half of this.
MAX_OUTPUT = 1_000_000

# A prompt that lists more items than this is no prompt.
MAX_ITERATIONS = 20_000

# Nodes visited and items handled: ten for each iteration that is allowed, and some 0.2 s of one core.
MAX_STEPS = 200_000


class ExhaustedError(Exception):
    """A bound of the rendering is reached; ``str(error)`` says which."""


@dataclass(slots=True)
class Budget:
    """What one rendering may still spend."""

    steps: int = MAX_STEPS
    iterations: int = MAX_ITERATIONS

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise ExhaustedError(f"the rendering takes more than {MAX_STEPS:,} steps")

    def iterate(self) -> None:
        self.iterations -= 1
        if self.iterations < 0:
            raise ExhaustedError(f"the loops go round more than {MAX_ITERATIONS:,} times")

    def text(self, length: int) -> None:
        """Before a string of this length is made."""
        if length > MAX_OUTPUT:
            raise ExhaustedError(f"a string would have more than {MAX_OUTPUT:,} characters")
        self.spend(length // 100)


def shown(value: Any, budget: Budget) -> str:
    """The value as it stands in the text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else spelled(value, budget)


def spelled(value: Any, budget: Budget, indent: int | None = None) -> str:
    """The value as JSON, with nothing escaped that JSON does not want escaped."""
    if value is None or isinstance(value, bool) or is_number(value):
        return json.dumps(value, allow_nan=False)
    pieces: list[str] = []
    _spell(value, _Writer(pieces, budget, indent), 1)
    return "".join(pieces)


@dataclass(slots=True)
class _Writer:
    pieces: list[str]
    budget: Budget
    indent: int | None
    length: int = 0

    def write(self, piece: str) -> None:
        self.budget.spend(1)
        self.length += len(piece)
        if self.length > MAX_OUTPUT:
            raise ExhaustedError(f"a value takes more than {MAX_OUTPUT:,} characters")
        self.pieces.append(piece)

    def line(self, level: int) -> str:
        return "" if self.indent is None else "\n" + " " * (self.indent * level)

    def comma(self, level: int) -> str:
        return ", " if self.indent is None else "," + self.line(level)


def _spell(value: Any, writer: _Writer, level: int) -> None:
    """Piece by piece, for a list that holds itself twice over doubles at each level."""
    if isinstance(value, str):
        writer.write(json.dumps(value, ensure_ascii=False))
    elif is_list(value):
        writer.write("[")
        for number, item in enumerate(value):
            writer.write(writer.line(level) if number == 0 else writer.comma(level))
            _spell(item, writer, level + 1)
        writer.write(writer.line(level - 1) + "]" if value else "]")
    elif isinstance(value, Mapping):
        writer.write("{")
        for number, (name, item) in enumerate(value.items()):
            writer.write(writer.line(level) if number == 0 else writer.comma(level))
            writer.write(json.dumps(name, ensure_ascii=False) + ": ")
            _spell(item, writer, level + 1)
        writer.write(writer.line(level - 1) + "}" if value else "}")
    else:
        writer.write(json.dumps(value, allow_nan=False))


def items_of(value: Any) -> Sequence[Any]:
    """What a loop goes through: a list, the keys of a map, the characters of a string."""
    if isinstance(value, str) or is_list(value):
        return value
    if isinstance(value, Mapping):
        return list(value)
    raise EvaluationError(f"{kind(value)} has no items")


def listed(budget: Budget, value: Any) -> Sequence[Any]:
    items = items_of(value)
    budget.spend(len(items))
    return items
