"""A list's life: begun with what it is built over, and then a turn for each element until it is complete.

Each element is a turn like any other, with its own attempts, so that one alone is tried again and a crash loses none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure
from stepladder.schemas.pointer import resolve, value_at
from stepladder.validation.expressions import EvaluationFailure
from stepladder.validation.semantic import Rule
from stepladder.workflows.job import JobFailure, Turn
from stepladder.workflows.machine import ALWAYS, EXHAUSTED
from stepladder.workflows.names import EACH, names_of
from stepladder.workflows.visits import ListRun, VisitStatus

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.validation.expressions import Expression
    from stepladder.workflows.builder import TransitionBuilder
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import AskState, ListPlan

UNIQUE = "unique"
"""The id of the rule that no two elements are alike."""


@dataclass(frozen=True, slots=True)
class Building:
    """A list as far as it has come: its beginning, and the elements that were accepted since, in their order."""

    run: ListRun
    elements: tuple[Json, ...]


def building(job: Job, state: str) -> Building | None:
    """The list that ``state`` last began; None if it never did."""
    turns: list[Turn] = []
    for visit in reversed(job.visits):
        if visit.state != state:
            continue
        if isinstance(visit, ListRun):
            return Building(visit, tuple(turn.output for turn in reversed(turns) if not ends(visit, turn)))
        if isinstance(visit, Turn) and visit.accepted:
            turns.append(visit)
    return None


def ends(run: ListRun, turn: Turn) -> bool:
    """Whether an accepted turn ended the list, and is therefore not an element."""
    return run.until is not None and turn.action == run.until


def is_under_way(job: Job, state: AskState) -> bool:
    """Whether the job is between two elements of a list that ``state`` builds."""
    last = job.visits[-1] if job.visits else None
    if not isinstance(last, Turn | ListRun) or last.state != state.name:
        return False
    found = None if state.each is None else building(job, state.name)
    if found is None or (isinstance(last, Turn) and ends(found.run, last)):
        return False
    return len(found.elements) < (found.run.at_most if found.run.count is None else found.run.count)


def names_in(job: Job, state: AskState) -> dict[str, Json]:
    """The names that the questions and rules of ``state`` may read, including ``each`` for a list's elements."""
    names = names_of(job)
    found = None if state.each is None else building(job, state.name)
    return names if found is None else names | {EACH: _each(found)}


def _each(found: Building) -> JsonObject:
    index = len(found.elements) + 1
    names: dict[str, Json] = {"index": index, "count": found.run.count, "elements": found.elements}
    items = found.run.items
    return names | {"item": items[index - 1]} if isinstance(items, Sequence) and index <= len(items) else names


def rules_in(job: Job, state: AskState) -> tuple[Rule, ...]:
    """The rules of a turn in ``state``: the author's, and for an element that it is unlike those before it."""
    found = None if state.each is None or not state.each.unique else building(job, state.name)
    if state.each is None or found is None:
        return state.rules
    unlike = (Rule(UNIQUE, call=_Unlike(found, at), pointer=at) for at in state.each.unique)
    return (*state.rules, *unlike)


@dataclass(frozen=True, slots=True)
class _Unlike:
    found: Building
    at: str

    def __call__(self, output: Any, *, input: Any, turns: Any, tools: Any) -> str | None:  # noqa: A002 -- the contract's word
        del input, turns, tools
        value = _value(output, self.at)
        until = self.found.run.until
        if value is None or (until is not None and isinstance(output, Mapping) and output.get("action") == until):
            return None
        same = identity(value)
        for number, element in enumerate(self.found.elements, 1):
            if identity(_value(element, self.at)) == same:
                return f"must differ from element {number}"
        return None


def _value(element: Json, at: str) -> Json:
    path = resolve(at, element)
    value: Json = None if path is None else value_at(element, path)
    return value


def begin(builder: TransitionBuilder, state: AskState, plan: ListPlan) -> JobFailure | None:
    """Reads once what the list is built over, and writes it down."""
    measured = _measured(builder, state, plan)
    if isinstance(measured, JobFailure):
        return measured
    items, count = measured
    run = ListRun(
        visit=builder.next_visit(),
        state=state.name,
        at_most=plan.at_most,
        opened_at=builder.now,
        items=items,
        count=count,
        until=plan.until,
        closed_at=builder.now,
        status=VisitStatus.CLOSED,
    )
    builder.put(run)
    builder.note(EventKind.LIST_STARTED, {"state": state.name, "count": count, "at_most": plan.at_most})
    return None


def _measured(builder: TransitionBuilder, state: AskState, plan: ListPlan) -> tuple[Json, int | None] | JobFailure:
    if plan.over is not None:
        items = items_of(builder, plan.over, state.name, plan.at_most)
        return items if isinstance(items, JobFailure) else (items, len(items))
    if plan.count is None:
        return None, None
    where = f"`each.count` of state {state.name}"
    count = plan.count.evaluate(names_of(builder.job))
    if isinstance(count, EvaluationFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where}: {count.reason}")
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where} gave {str(count)[:100]}, and not a number of elements")
    if count > plan.at_most:
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where} gave {count}; `each.at_most` is {plan.at_most}")
    return None, count


def items_of(builder: TransitionBuilder, over: Expression, state: str, at_most: int) -> tuple[Json, ...] | JobFailure:
    """The items of ``each.over``. Too many items are an error, as is a value that is not a list."""
    items = over.evaluate(names_of(builder.job))
    where = f"`each.over` of state {state}"
    if isinstance(items, EvaluationFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where}: {items.reason}")
    if isinstance(items, str) or not isinstance(items, Sequence):
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where} gave {str(items)[:100]}, which is not a list")
    if len(items) > at_most:
        return JobFailure(Failure.EXPRESSION_ERROR, f"{where} gave {len(items)} items; `each.at_most` is {at_most}")
    return tuple(items)


def next_state(builder: TransitionBuilder, state: AskState) -> str | None:
    """The next state after a finished list; None if the list needs another element."""
    found = building(builder.job, state.name)
    if found is None:
        raise ValueError(f"state {state.name} has begun no list")
    last = builder.job.visits[-1]
    if isinstance(last, Turn) and ends(found.run, last) and last.action is not None:
        return _leave(builder, found, last.action, state.edges[last.action])
    if found.run.count is not None and state.always is not None:
        done = len(found.elements) >= found.run.count
        return _leave(builder, found, ALWAYS, state.always) if done else None
    if len(found.elements) >= found.run.at_most and state.exhausted is not None:
        return _leave(builder, found, EXHAUSTED, state.exhausted)
    return None


def _leave(builder: TransitionBuilder, found: Building, word: str, target: str) -> str:
    builder.note(EventKind.LIST_ENDED, {"state": found.run.state, "elements": len(found.elements), "by": word})
    return builder.follow(word, target)
