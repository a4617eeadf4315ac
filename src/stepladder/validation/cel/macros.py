"""The macros: ``list.macro(variable, expression)``, evaluated once for each item, or for each key of a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.validation.jsonmath import EvaluationError, is_list, is_map, kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.validation.cel.run import Run

Node: TypeAlias = "Callable[[Run], Any]"

# The source, the variable's slot, the steps that one item costs, the expressions.
Macro: TypeAlias = Callable[[Node, int, int, list[Node]], Node]


def _each(run: Run, source: Node, slot: int, weight: int) -> Iterator[Any]:
    items = source(run)
    if not is_list(items) and not is_map(items):
        raise EvaluationError(f"a macro takes a list or a map, not {kind(items)}")
    for item in items:
        run.spend(weight)
        run.slots[slot] = item
        yield item


def _holds(run: Run, condition: Node) -> bool:
    value = condition(run)
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"the condition of a macro is true or false, not {kind(value)}")


def _quantified(*, decisive: bool) -> Macro:
    """``exists`` and ``all``: like ``||`` and ``&&``, one deciding item decides, even if others fail."""

    def macro(source: Node, slot: int, weight: int, bodies: list[Node]) -> Node:
        def quantified(run: Run) -> bool:
            error: EvaluationError | None = None
            for _ in _each(run, source, slot, weight):
                try:
                    if _holds(run, bodies[0]) is decisive:
                        return decisive
                except EvaluationError as problem:
                    error = error or problem
            if error is not None:
                raise error
            return not decisive

        return quantified

    return macro


def _exists_one(source: Node, slot: int, weight: int, bodies: list[Node]) -> Node:
    return lambda run: sum(_holds(run, bodies[0]) for _ in _each(run, source, slot, weight)) == 1


def _filter(source: Node, slot: int, weight: int, bodies: list[Node]) -> Node:
    return lambda run: [item for item in _each(run, source, slot, weight) if _holds(run, bodies[0])]


def _map(source: Node, slot: int, weight: int, bodies: list[Node]) -> Node:
    if len(bodies) == 1:
        [body] = bodies
        return lambda run: [body(run) for _ in _each(run, source, slot, weight)]
    condition, body = bodies
    return lambda run: [body(run) for _ in _each(run, source, slot, weight) if _holds(run, condition)]


MACROS: Mapping[str, tuple[tuple[int, ...], Macro]] = {
    "all": ((2,), _quantified(decisive=False)),
    "exists": ((2,), _quantified(decisive=True)),
    "exists_one": ((2,), _exists_one),
    "filter": ((2,), _filter),
    "map": ((2, 3), _map),
}
