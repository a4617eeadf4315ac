"""Expressions in documents: CEL over JSON, compiled once, bounded in every evaluation.

The grammar is CEL's; the values are JSON's. Where the two disagree JSON wins: 36 equals 36.0, integers do not overflow,
``7 / 2`` is 3.5, there are no bytes and no message types. Beyond CEL's functions there are ``sum``, ``abs``, ``round``,
``min``, ``max``, ``unique`` and ``date``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from stepladder.validation.cel.compiler import Compiler
from stepladder.validation.cel.parsing import BadSourceError
from stepladder.validation.cel.run import MAX_STEPS, ExhaustedError, Run
from stepladder.validation.cel.times import spelled
from stepladder.validation.jsonmath import EvaluationError, checked

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

# A document may hold integers of 308 digits, which are those that a double reaches; so may a result.
_LARGEST = 10**308 - 1


@dataclass(frozen=True, slots=True)
class BadExpression:
    """Why the source is not an expression, and where."""

    reason: str


@dataclass(frozen=True, slots=True)
class EvaluationFailure:
    """There is no value. ``missing`` is the dotted name that does not exist, such as ``turns.usage``."""

    reason: str
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. It has no state, so threads and tasks may share it.

    ``names`` are the dotted paths that it reads, from the root names on: ``("turns", "usage", "team")``. A path stops
    where an index or a method begins. The variables of macros are not among them.
    """

    source: str
    names: frozenset[tuple[str, ...]]
    _node: Callable[[Run], Any] = field(repr=False, compare=False)
    _slots: int = field(repr=False, compare=False)

    def evaluate(self, names: Mapping[str, Json]) -> Json | EvaluationFailure:
        """The value for these root names, as plain JSON; a timestamp becomes ISO 8601, a duration seconds with ``s``.

        Never raises. One evaluation visits at most ``MAX_STEPS`` nodes and items, and its result has as many at most.
        """
        run = Run(names, [None] * self._slots)
        try:
            value = self._node(run)
            run.left = MAX_STEPS
            return _plain(value, run.spend)
        except EvaluationError as error:
            where = f" (in `{error.where}`)" if error.where else ""
            return EvaluationFailure(error.reason + where, error.missing)
        except ExhaustedError:
            return EvaluationFailure(f"the evaluation takes more than {MAX_STEPS:,} steps; make the lists shorter")
        except RecursionError:
            return EvaluationFailure("a value is nested too deeply")
        except (ArithmeticError, ValueError) as error:
            # Dates before year 1, integers that no double holds, half a surrogate pair in a pattern's text.
            return EvaluationFailure(f"a value is out of range: {error}")


def compile_expression(source: str) -> Expression | BadExpression:
    """Compiles CEL. Never raises."""
    compiler = Compiler(source)
    try:
        node = compiler.compile()
    except BadSourceError as error:
        return BadExpression(str(error))
    except RecursionError:
        return BadExpression("the expression is nested too deeply")
    return Expression(source, frozenset(compiler.names), node, compiler.slots)


def _plain(value: Any, spend: Callable[[int], None]) -> Json:
    """A copy in Python's own types. Steps are counted, for a list that holds itself twice doubles at each level."""
    spend(1)
    match value:
        case None | bool():
            return value
        case str():
            spend(len(value) // 100)
            return value
        case int():
            if abs(value) > _LARGEST:
                raise EvaluationError("the value has more than 308 digits")
            return value
        case float():
            return checked(value)
        case datetime() | timedelta():
            return spelled(value)
        case Mapping():
            return {name: _plain(item, spend) for name, item in value.items()}
        case _:
            return [_plain(item, spend) for item in value]
