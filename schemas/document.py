"""A workflow document: the shape that YAML, JSON and Python all build.

Only the shape is here. ``lint.compile`` checks edges, names and schemas, and turns a document into a machine.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from stepladder.schemas.canonical import content_hash
from stepladder.schemas.job import Failure
from stepladder.schemas.tool import Effect

MAP, PLAIN = "<map>", "<plain>"


def _shape(value: Any) -> str:
    return MAP if isinstance(value, dict | BaseModel) else PLAIN


def _schema_of(value: Any) -> Any:
    """Python form: a pydantic model in place of its JSON Schema."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    return value


# If a field is text or a map, the value's shape decides: one error instead of one for each branch.
Action = Annotated[str, Field(min_length=1, max_length=100)]
StateName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
Expression = Annotated[str, Field(min_length=1)]
Expressions: TypeAlias = Annotated[
    Annotated[Expression, Tag(PLAIN)] | Annotated[dict[str, Expression], Tag(MAP)], Discriminator(_shape)
]
Edges: TypeAlias = Annotated[
    Annotated[StateName, Tag(PLAIN)] | Annotated[dict[Action, StateName], Tag(MAP)], Discriminator(_shape)
]
JsonSchema: TypeAlias = Annotated[dict[str, Any], BeforeValidator(_schema_of)]


class Part(BaseModel):
    """A part of a document, immutable. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Sampling(Part):
    """How the engine draws tokens. A closed list: an engine ignores a misspelt field and answers 200."""

    temperature: float | None = Field(None, ge=0, le=5)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1)
    min_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0)
    stop: list[str] | None = Field(None, max_length=16)
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class Retry(Part):
    """How often a turn is tried. ``attempts`` counts answers that arrived, the first one included; ``transport``
    counts the rest; without it only the deadline limits them. ``None`` takes the default."""

    attempts: int = Field(3, ge=0, le=100)
    transport: int | None = Field(None, ge=0, le=1000)


class ToolRetry(Part):
    """How often a tool may be run: ``attempts`` counts runs that returned, the first one included."""

    attempts: int = Field(1, ge=1, le=100)


class RuleSpec(Part):
    """A semantic rule: a CEL ``check`` that must be true, or a ``call`` of a rule registered in Python."""

    id: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=100)
    check: Expression | None = None
    call: str | None = None
    pointer: str = Field("", pattern=r"^(/.*)?$", max_length=500)
    reason: str = Field("", max_length=1000)
    severity: Literal["reject", "observe"] = "reject"

    @model_validator(mode="after")
    def _one_way(self) -> RuleSpec:
        if (self.check is None) == (self.call is None):
            raise ValueError("a rule has either `check` (CEL) or `call` (a rule registered in Python)")
        if self.check is not None and not self.reason:
            raise ValueError("a rule with `check` needs a `reason`, which tells the model what is required")
        return self


class EngineChoice(Part):
    """Settings of a workflow for all its turns, or of a state for its own."""

    model: str | None = Field(None, min_length=1, max_length=300)
    decoding: Literal["strict", "prompt"] | None = None
    stream: bool | None = None
    sampling: Sampling | None = None
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)


class Each(Part):
    """A list built element by element: one for each item of ``over``, or ``count`` of them, or until an output has the
    action ``until``. ``unique`` are JSON pointers into an element; no two elements may have the same value there."""

    over: Expression | None = None
    count: Expression | None = None
    until: Action | None = None
    at_most: int = Field(ge=1, le=1000)
    unique: list[Annotated[str, Field(pattern=r"^(/.*)?$", max_length=500)]] = Field(
        default_factory=list, max_length=20
    )

    @model_validator(mode="after")
    def _one_measure(self) -> Each:
        if sum(measure is not None for measure in (self.over, self.count, self.until)) != 1:
            raise ValueError("a list has one of `over` (a list), `count` (a number) and `until` (an action)")
        return self


class Ask(EngineChoice):
    """A turn: one question to the model, whose answer is bound by ``output`` and ``tools``.

    With ``each`` it is a turn for every element of a list, of which ``output`` and ``rules`` describe one.
    """

    ask: str = Field(min_length=1)
    output: JsonSchema | None = None
    tools: list[str] = Field(default_factory=list, max_length=100)
    rules: list[RuleSpec] = Field(default_factory=list, max_length=100)
    retry: Retry | None = None
    next: Edges
    on_failure: dict[Annotated[Failure, Field(strict=False)], StateName] = Field(default_factory=dict)
    max_visits: int | None = Field(None, ge=1, le=10_000)
    history: Annotated[
        Annotated[Literal["all", "none"], Tag("<word>")] | Annotated[int, Field(ge=0, le=10_000), Tag("<number>")],
        Discriminator(lambda value: "<number>" if isinstance(value, int) else "<word>"),
    ] = "all"
    loop: Literal["on", "off"] = "on"
    degrade: bool = False
    each: Each | None = None


class Chosen(Part):
    """The tool that the named turn chose."""

    from_: StateName = Field(alias="from")


class Call(Part):
    """A tool run by the machine. ``effect``, if given, must agree with the code's.

    ``timeout_s`` in seconds, of one run; if the code has one as well, the smaller applies. Without ``retry`` a tool is
    not run again after an error.
    """

    tool: Annotated[Annotated[str, Tag(PLAIN)] | Annotated[Chosen, Tag(MAP)], Discriminator(_shape)]
    arguments: Expressions | None = None
    effect: Effect | None = Field(None, strict=False)
    timeout_s: float | None = Field(None, ge=0, le=30 * 86400)
    retry: ToolRetry | None = None
    next: dict[Action, StateName]
    max_visits: int | None = Field(None, ge=1, le=10_000)


class WaitSpec(Part):
    """The expected signal. ``timeout_s`` in seconds; without it the job waits forever.

    ``by: other`` accepts it only from another principal; ``scopes`` are what its sender needs.
    """

    signal: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=100)
    schema_: JsonSchema | None = Field(None, alias="schema")
    show: Expressions | None = None
    timeout_s: float | None = Field(None, ge=0, le=10 * 365 * 86400)
    by: Literal["anyone", "other"] = "anyone"
    scopes: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(default_factory=list, max_length=20)


class Wait(Part):
    """A state that waits for a signal."""

    wait: WaitSpec
    next: dict[Action, StateName]


class FanOut(Part):
    """One child for each item of ``over``, at most ``concurrency`` of them at once.

    The first failure stops the others, unless ``failures`` is ``collect``.
    """

    over: Expression
    at_most: int = Field(ge=1, le=1000)
    concurrency: int = Field(10, ge=1, le=1000)
    failures: Literal["stop", "collect"] = "stop"


class ChildWorkflow(Part):
    """A child job of the workflow ``call``, or several; without ``version``, of the newest when they start."""

    call: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)
    version: int | None = Field(None, ge=1, le=2**31 - 1)
    input: Expressions | None = None
    each: FanOut | None = None
    next: dict[Action, StateName]
    max_visits: int | None = Field(None, ge=1, le=10_000)


class End(Part):
    """The end of the job."""

    end: Literal["succeeded", "failed"]
    result: Expressions | None = None


KINDS = ("ask", "tool", "wait", "call", "end")


def _kind(state: Any) -> str | None:
    """The kind is the one keyword of ``KINDS`` that a state has; with none or several it has no kind."""
    if isinstance(state, Part):
        words = [word for word in KINDS if hasattr(state, word)]
    else:
        words = [word for word in KINDS if word in state] if isinstance(state, dict) else []
    return f"<{words[0]}>" if len(words) == 1 else None


State: TypeAlias = Annotated[
    Annotated[Ask, Tag("<ask>")]
    | Annotated[Call, Tag("<tool>")]
    | Annotated[Wait, Tag("<wait>")]
    | Annotated[ChildWorkflow, Tag("<call>")]
    | Annotated[End, Tag("<end>")],
    Discriminator(_kind),
]


class Loop(Part):
    """When a job is in a loop: ``repeats`` visits like the one before, or ``stale`` turns with nothing new."""

    repeats: int = Field(2, ge=1, le=1000)
    stale: int = Field(5, ge=1, le=1000)


class Limits(Part):
    """Bounds of one job. ``token_budget`` counts prompt and completion of every attempt; ``deadline_s`` in seconds.

    ``max_in_flight`` limits how many jobs of the workflow, in all its versions, are leased by workers at once.
    """

    max_turns: int = Field(50, ge=0, le=100_000)
    token_budget: int | None = Field(None, ge=0)
    deadline_s: float | None = Field(None, ge=0)
    max_in_flight: int | None = Field(None, ge=0, le=2**31 - 1)
    loop: Annotated[Annotated[Literal["off"], Tag(PLAIN)] | Annotated[Loop, Tag(MAP)], Discriminator(_shape)] = Field(
        default_factory=lambda: Loop()
    )


class Workflow(EngineChoice):
    """A versioned state machine."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)
    version: int = Field(ge=1, le=2**31 - 1)
    description: str = Field("", max_length=2000)
    input: JsonSchema = Field(default_factory=lambda: {"type": "object"})
    system: str | None = None
    start: StateName
    retry: Retry | None = None
    limits: Limits = Field(default_factory=lambda: Limits())
    states: dict[StateName, State] = Field(min_length=1, max_length=1000)

    def definition(self) -> dict[str, Any]:
        """The document as JSON, without defaults: equal for YAML, JSON and Python."""
        definition: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return definition

    def hash(self) -> str:
        """SHA-256 of the canonical definition.

        The order of names counts only in an output's schema: a constrained decoder writes the fields in that order.
        """
        definition = self.definition()
        for state in definition["states"].values():
            if "output" in state:
                state["output"] = json.dumps(state["output"])
        return content_hash(definition)
