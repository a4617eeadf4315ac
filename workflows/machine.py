"""A workflow, compiled: every template, expression and schema of the document read once and ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from stepladder.validation.expressions import EvaluationFailure

if TYPE_CHECKING:
    from stepladder.schemas.document import Workflow
    from stepladder.schemas.job import Failure
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Tool
    from stepladder.validation.expressions import Expression
    from stepladder.validation.schema import Schema
    from stepladder.validation.semantic import Rule
    from stepladder.workflows.templates import Template


Shape: TypeAlias = "Expression | Mapping[str, Expression]"
"""One expression, or a map of them that gives an object."""


ALWAYS, EXHAUSTED, OK, ERROR, TIMEOUT = "always", "exhausted", "ok", "error", "timeout"
"""Words of edges that no model and no signal can say: they are the machine's own."""


def evaluate(shape: Shape, names: Mapping[str, Json]) -> Json | EvaluationFailure:
    """The value of an expression or of a map of them; the first failure wins."""
    if not isinstance(shape, Mapping):
        return shape.evaluate(names)
    values: dict[str, Json] = {}
    for name, expression in shape.items():
        value = expression.evaluate(names)
        if isinstance(value, EvaluationFailure):
            return value
        values[name] = value
    return values


@dataclass(frozen=True, slots=True)
class ListPlan:
    """How a turn builds a list: over what, how far, and by which pointers no two elements may be alike.

    Exactly one of ``over``, ``count`` and ``until`` is there.
    """

    over: Expression | None
    count: Expression | None
    until: str | None
    at_most: int
    unique: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskState:
    """A turn. ``always`` is the one next state of an output with no action; else ``edges`` has one by action word.

    ``exhausted`` is where visit ``max_visits`` + 1 goes instead. With ``each`` it builds a list: ``always`` is where
    the job goes when that is complete, or, if the model says when, ``edges`` has that one word; ``exhausted`` is also
    the target of a list that the model did not end.
    """

    name: str
    question: Template
    schema: Schema
    description: str
    rules: tuple[Rule, ...]
    max_completion_tokens: int
    sampling: JsonObject
    attempts: int
    transport: int | None
    always: str | None
    edges: Mapping[str, str]
    on_failure: Mapping[Failure, str]
    max_visits: int | None
    exhausted: str | None
    history: int | Literal["all"]
    model: str | None
    strict: bool
    stream: bool
    loop: bool
    degrade: bool
    each: ListPlan | None = None


@dataclass(frozen=True, slots=True)
class ToolState:
    """A tool run by the machine: always ``tools``' only one, or, with ``chosen_by``, the one that turn chose.

    ``attempts`` counts the runs that may come back, and each tool's ``timeout_s`` is what binds it here.
    """

    name: str
    tools: Mapping[str, Tool]
    chosen_by: str | None
    arguments: Shape | None
    edges: Mapping[str, str]
    max_visits: int | None
    exhausted: str | None
    attempts: int

    @property
    def irreversible(self) -> bool:
        return any(tool.effect.value == "irreversible" for tool in self.tools.values())


@dataclass(frozen=True, slots=True)
class WaitState:
    """An outside event. ``freezes`` are the states of irreversible tools that its edges lead to.

    ``by_other`` takes no signal of the job's own principal, and ``scopes`` are what a sender needs.
    """

    name: str
    signal: str
    schema: Schema | None
    show: Shape | None
    timeout_s: float | None
    edges: Mapping[str, str]
    freezes: tuple[str, ...]
    by_other: bool = False
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildState:
    """Other jobs, run and waited for: one with ``inputs``, or one for each item of ``over``.

    ``collect`` says that the failure of one does not stop the others.
    """

    name: str
    workflow: str
    version: int | None
    inputs: Shape
    over: Expression | None
    at_most: int
    concurrency: int
    collect: bool
    edges: Mapping[str, str]
    max_visits: int | None
    exhausted: str | None


@dataclass(frozen=True, slots=True)
class EndState:
    """The end."""

    name: str
    succeeded: bool
    result: Shape | None


State: TypeAlias = AskState | ToolState | WaitState | ChildState | EndState


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """When a job counts as looping; None if the author switched this off."""

    repeats: int
    stale: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What ``compile_workflow`` makes of a document and the user's code. ``hash`` is the definition's."""

    document: Workflow
    hash: str
    input: Schema
    system: Template | None
    start: str
    states: Mapping[str, State]
    max_turns: int
    token_budget: int | None
    deadline_s: float | None
    loop: LoopLimits | None

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def version(self) -> int:
        return self.document.version

    def ask(self, name: str) -> AskState:
        """The ask state of that name. KeyError or TypeError if the job belongs to another machine."""
        state = self.states[name]
        if not isinstance(state, AskState):
            raise TypeError(f"state {name} of {self.name} {self.version} asks nothing")
        return state

    def tool(self, name: str, tool: str) -> Tool:
        """The tool that the state of that name runs under that name. Raises as ``ask`` does."""
        state = self.states[name]
        if not isinstance(state, ToolState):
            raise TypeError(f"state {name} of {self.name} {self.version} runs no tool")
        return state.tools[tool]


def _exhausted(state: AskState | ToolState | ChildState) -> list[tuple[str, str]]:
    return [] if state.exhausted is None else [(EXHAUSTED, state.exhausted)]


def targets(state: State) -> list[tuple[str, str]]:
    """Every edge out of a state as ``(word, target)``, in the document's order."""
    match state:
        case AskState():
            always = [] if state.always is None else [(ALWAYS, state.always)]
            failures = [(failure.value, target) for failure, target in state.on_failure.items()]
            return [*always, *state.edges.items(), *_exhausted(state), *failures]
        case ToolState() | ChildState():
            return [*state.edges.items(), *_exhausted(state)]
        case WaitState():
            return list(state.edges.items())
        case EndState():
            return []
        case _:
            assert_never(state)
