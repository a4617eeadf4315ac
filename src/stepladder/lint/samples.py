"""Sample values for the names that expressions read, as they may be when the job is in a certain state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepladder.lint.instances import instances
from stepladder.validation.schema import Schema, compile_schema
from stepladder.workflows.machine import (
    ALWAYS,
    ERROR,
    EXHAUSTED,
    OK,
    TIMEOUT,
    AskState,
    State,
    ToolState,
    WaitState,
    targets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.expressions import EvaluationFailure, Expression, Purse

Name = tuple[str, ...]
"""``("output",)``, ``("input",)``, or a root and a state: ``("turns", "usage")``."""

AN_ERROR: Json = {"kind": "ValueError", "message": "there is no such order"}


class NotKnownError(Exception):
    """Nothing is known of a value that was read: neither sample nor schema. It ends the evaluation, whatever is in it,
    for what the value would be decides what comes next."""


class Known(Mapping[str, "Json"]):
    """Names, of which those that are not known are there all the same, and cannot be read, save the ``absent``."""

    def __init__(self, known: Mapping[str, Json], absent: Collection[str] = ()) -> None:
        self._known = known
        self._absent = absent

    def __contains__(self, name: object) -> bool:
        return name not in self._absent

    def __getitem__(self, name: str) -> Json:
        if name not in self._known:
            raise NotKnownError
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        raise NotKnownError

    def __len__(self) -> int:
        raise NotKnownError


@dataclass
class Samples:
    """The samples of one machine's names. ``states`` are those that compiled; ``whole`` says that all of them did.
    ``work`` is what the samples of one schema may take, ``steps`` what all evaluating may."""

    input: Schema | None
    states: Mapping[str, State]
    whole: bool
    work: int
    steps: Purse
    _made: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    _accepted: dict[str, list[Json]] = field(default_factory=dict)
    _returns: dict[str, Schema | None] = field(default_factory=dict)
    _leads: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def of(self, name: Name, here: str) -> Sequence[Json]:
        """The samples of a name for an expression of the state ``here``; empty where nothing is known."""
        match name:
            case ("output",):
                return self._instances(self.schema(name, here))
            case ("input",):
                return self._instances(self.input)
            case ("turns" | "visits", state) if isinstance(turn := self.states.get(state), AskState):
                found = self._left_by(turn, here)
            case ("signals" | "visits", state) if isinstance(wait := self.states.get(state), WaitState):
                found = self._left_by(wait, here)
            case ("tools" | "visits", state) if isinstance(self.states.get(state), ToolState):
                found = list(self._instances(self.schema(name, here)))
            case ("lists", state) if isinstance(turn := self.states.get(state), AskState) and turn.each is not None:
                until = turn.each.until
                found = [one for one in self._accepted_by(turn) if until is None or _word(one) != until]
            case ("errors", state) if isinstance(self.states.get(state), ToolState):
                return [AN_ERROR]
            case _:
                return []
        if name[0] in ("visits", "lists"):
            pairs: list[Json] = [[one, other] for one, other in zip(found, [*found[1:], *found[:1]], strict=True)]
            return pairs if name[0] == "visits" or not found else [*pairs, []]
        return found

    def absent(self, name: Name, here: str) -> bool:
        """Whether the name can never be there in the state ``here``, because no path leads there from its own state."""
        if len(name) < 2 or not self.whole:
            return False
        state = self.states.get(name[1])
        match state:
            case AskState() | WaitState():
                ways = [target for _, target in _answered(state)]
            case ToolState():
                word = ERROR if name[0] == "errors" else OK
                ways = [state.edges[word]] if word in state.edges else []
            case _:
                return False
        return not any(self._leads_to(here, state, target) for target in ways)

    def schema(self, name: Name, here: str) -> Schema | None:
        """The schema of a name's values, where there is one."""
        match name:
            case ("output",):
                return self.schema(("turns", here), here)
            case ("input",):
                return self.input
            case ("turns" | "visits" | "signals" | "tools", state):
                match self.states.get(state):
                    case AskState(schema=schema) | WaitState(schema=Schema() as schema):
                        return schema
                    case ToolState() as run:
                        return self._result(run)
        return None

    def _result(self, run: ToolState) -> Schema | None:
        """Of a state that runs one of several tools, nothing is known."""
        if len(run.tools) != 1:
            return None
        if run.name not in self._returns:
            [tool] = run.tools.values()
            compiled = compile_schema(tool.returns) if tool.returns else None
            self._returns[run.name] = compiled if isinstance(compiled, Schema) else None
        return self._returns[run.name]

    def _instances(self, schema: Schema | None) -> tuple[Json, ...]:
        if schema is None:
            return ()
        if schema.hash not in self._made:
            self._made[schema.hash] = instances(schema, work=self.work)
        return self._made[schema.hash]

    def _left_by(self, state: AskState | WaitState, here: str) -> list[Json]:
        """What the last visit of a state may have left behind, seen from ``here``."""
        if not self.whole:
            return list(self._accepted_by(state))
        words = {word for word, target in _answered(state) if self._leads_to(here, state, target)}
        return [one for one in self._accepted_by(state) if _edge(state, one) in words]

    def _leads_to(self, here: str, state: AskState | WaitState | ToolState, start: str) -> bool:
        """Whether ``here`` can be reached from ``start`` while the last answer of ``state`` stays the last one.

        Of a tool's results only the schema is known, so that a later one is as good.
        """
        key = (state.name, start, here)
        if key not in self._leads:
            reached, rest = {start}, [start]
            while rest and here not in reached:
                name = rest.pop()
                ways = targets(self.states[name]) if name in self.states else []
                if name == state.name and not isinstance(state, ToolState):
                    ways = _without_answer(state)
                self.steps.left -= len(ways)
                for _, target in ways:
                    if target not in reached:
                        reached.add(target)
                        rest.append(target)
            self._leads[key] = here in reached
        return self._leads[key]

    def _accepted_by(self, state: AskState | WaitState) -> Sequence[Json]:
        """The samples that the turn's own rules let through. A rule that none of the samples satisfies says nothing,
        for samples know nothing of sums."""
        if isinstance(state, WaitState):
            return self._instances(state.schema)
        if state.name not in self._accepted:
            left = list(self._instances(state.schema))
            for rule in state.rules:
                if rule.check is None or rule.severity == "observe":
                    continue
                holding = [one for one in left if self._evaluated(rule.check, one) is not False]
                if any(self._evaluated(rule.check, one) is True for one in holding):
                    left = holding
            self._accepted[state.name] = left
        return self._accepted[state.name]

    def _evaluated(self, check: Expression, output: Json) -> Json | EvaluationFailure:
        """The value where the output alone decides it, else None."""
        self.steps.left -= len(check.source)
        try:
            return check.evaluate(Known({"output": output}), self.steps)
        except NotKnownError:
            return None


def _word(sample: Json) -> str | None:
    word = sample.get("action") if isinstance(sample, Mapping) else None
    return word if isinstance(word, str) else None


def _edge(state: AskState | WaitState, sample: Json) -> str | None:
    """The word by which the sample goes on, as ``_answered`` has it."""
    if isinstance(state, WaitState) or (state.each is None and state.always is None):
        return _word(sample)
    return _word(sample) if state.each is not None and _word(sample) == state.each.until else ALWAYS


def _answered(state: AskState | WaitState) -> list[tuple[str, str]]:
    """The edges that an answer takes, as ``(word, target)``. Behind one element of a list comes the next."""
    if isinstance(state, WaitState):
        return [(word, target) for word, target in state.edges.items() if word != TIMEOUT]
    if state.each is not None:
        onward = [state.name, *(target for target in (state.always, state.exhausted) if target is not None)]
        return [*state.edges.items(), *((ALWAYS, target) for target in onward)]
    return list(state.edges.items()) if state.always is None else [(ALWAYS, state.always)]


def _without_answer(state: AskState | WaitState) -> list[tuple[str, str]]:
    """The edges by which a state is left with nothing new in its place."""
    if isinstance(state, WaitState):
        return [(TIMEOUT, state.edges[TIMEOUT])] if TIMEOUT in state.edges else []
    exhausted = [] if state.exhausted is None else [(EXHAUSTED, state.exhausted)]
    return [*exhausted, *((failure.value, target) for failure, target in state.on_failure.items())]
