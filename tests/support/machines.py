"""Small machines, built as users build them: a document's text and a kit of tools. And one job to play through them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID, uuid5

from stepladder.lint.compile import compile_workflow
from stepladder.schemas.actor import LOCAL, Actor
from stepladder.schemas.answer import Completion, Usage, Verdict, Violation
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.workflows.advance import advance
from stepladder.workflows.events import Cancelled, Claimed, Judged, Settled, Signalled, ToolFailed, ToolReturned
from stepladder.workflows.job import Job, Signal
from stepladder.workflows.load import Loaded, load_document
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.schemas.event import EventKind
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.events import Event
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Command, Transition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = UUID("018f0000-0000-7000-8000-000000000001")
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}

T = TypeVar("T")


def tool(
    name: str,
    effect: Effect = Effect.READ,
    parameters: Mapping[str, Any] = ANY_OBJECT,
    permissions: tuple[str, ...] = (),
    description: str = "",
) -> Tool:
    """A tool that these tests never run: the machine only asks for it."""
    return Tool(name, effect, parameters, lambda **_: None, permissions, description)


QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}

KIT = Kit(
    tools={
        one.name: one
        for one in (
            tool("look", parameters=QUERY, description="Looks something up."),
            tool("save", Effect.IDEMPOTENT),
            tool("pay", Effect.IRREVERSIBLE, permissions=("money",)),
        )
    },
    rules={"iban": lambda *_, **__: None},
)


def document(states: str, head: str = "") -> str:
    """A document's text: a head of one's own, or name, version and the first state as the start."""
    start = next(line.split(":")[0].strip() for line in states.splitlines() if line.strip())
    body = "\n".join(f"  {line}" for line in states.strip("\n").splitlines())
    words = {line.split(":")[0] for line in head.splitlines()}
    fixed = {"name": "name: small", "version": "version: 1", "start": f"start: {start}"}
    lines = [text for word, text in fixed.items() if word not in words]
    return "\n".join([*lines, *head.strip("\n").splitlines(), "states:", body, ""])


def loaded(text: str) -> Loaded:
    found = load_document(text)
    assert isinstance(found, Loaded), "\n".join(map(str, found))
    return found


def findings_of(text: str, kit: Kit = KIT) -> tuple[Finding, ...]:
    """What compiling a document of the right shape finds."""
    return compile_workflow(loaded(text).document, kit).findings


def codes_of(text: str, kit: Kit = KIT) -> list[tuple[str, str]]:
    """The errors as ``(code, pointer)``."""
    return [(one.code, one.pointer) for one in findings_of(text, kit) if one.severity is Severity.ERROR]


def machine_of(text: str, kit: Kit = KIT) -> Machine:
    compiled = compile_workflow(loaded(text).document, kit)
    assert compiled.machine is not None, "\n".join(map(str, compiled.findings))
    return compiled.machine


def accepted(output: Json, *, tokens: int = 10, content: bytes | None = None) -> Verdict:
    text = json.dumps(output).encode() if content is None else content
    return Verdict(Outcome.VALID, output=output, completion=Completion(text, usage=Usage(tokens, 0)))


def rejected(
    outcome: Outcome,
    cause: Cause | str | None = None,
    *,
    content: bytes | None = None,
    tokens: int = 10,
    prompt: int = 0,
    errors: tuple[Violation, ...] = (),
    retry_after_s: float | None = None,
    finish_reason: str | None = None,
    passed: int = 0,
) -> Verdict:
    usage = Usage(prompt, tokens - prompt) if tokens else None
    completion = Completion(content, finish_reason=finish_reason, usage=usage)
    word = None if cause is None else str(cause)
    rungs = Rungs.climbed(passed)
    return Verdict(outcome, word, rungs, errors=errors, completion=completion, retry_after_s=retry_after_s)


@dataclass
class Play:
    """One job on its way through a machine. Each method sends one event ``after`` seconds and gives the step."""

    machine: Machine
    job: Job
    now: datetime = NOW
    max_model_len: int | None = None
    steps: list[Transition] = field(default_factory=list)
    _signals: int = 0

    def send(self, event: Event, after: float = 0.0, *, hold: bool = False) -> Transition:
        self.now += timedelta(seconds=after)
        step = advance(self.machine, self.job, event, self.now, max_model_len=self.max_model_len, hold=hold)
        self.job = step.job
        self.steps.append(step)
        return step

    def claim(self, after: float = 0.0, *, lost: bool = False, hold: bool = False) -> Transition:
        """``lost`` is true where the worker before did not hand the job back, ``hold`` where the job is paused."""
        return self.send(Claimed(lost), after, hold=hold)

    def begun(self) -> Self:
        """The job once a worker has claimed it for the first time."""
        self.claim()
        return self

    def cancel(self, after: float = 0.0) -> Transition:
        return self.send(Cancelled(), after)

    def says(self, output: Json, after: float = 0.0, *, tokens: int = 10) -> Transition:
        return self.send(Judged(accepted(output, tokens=tokens)), after)

    def fails(self, outcome: Outcome, cause: Cause | str | None = None, after: float = 0.0, **more: Any) -> Transition:
        return self.send(Judged(rejected(outcome, cause, **more)), after)

    def returns(self, result: Json, after: float = 0.0, *, hold: bool = False) -> Transition:
        return self.send(ToolReturned(result), after, hold=hold)

    def breaks(self, kind: str = "KeyError", message: str = "not there", after: float = 0.0) -> Transition:
        return self.send(ToolFailed(ToolError(kind, message)), after)

    def signal(
        self,
        payload: Json,
        after: float = 0.0,
        *,
        name: str | None = None,
        received: float = 0.0,
        sender: Actor = LOCAL,
    ) -> Transition:
        """``received`` is in seconds before the event."""
        self._signals += 1
        name = self.wait.signal if name is None else name
        at = self.now + timedelta(seconds=after - received)
        return self.send(Signalled(Signal(uuid5(JOB, f"signal/{self._signals}"), name, payload, at, sender)), after)

    def settle(self, *, done: bool, result: Json = None, by: str = "", after: float = 0.0) -> Transition:
        return self.send(Settled(done, result, by), after)

    @property
    def call(self) -> ToolCall:
        """The last visit, known to be a tool call."""
        call = self.job.visits[-1]
        assert isinstance(call, ToolCall)
        return call

    @property
    def wait(self) -> SignalWait:
        """The open visit, known to be a wait."""
        wait = self.job.open
        assert isinstance(wait, SignalWait)
        return wait

    def answer(self, action: str, **more: Json) -> Transition:
        """Sends a signal that names the open wait."""
        return self.signal({"action": action, "wait_id": str(self.wait.wait_id), **more})

    def data(self, kind: EventKind) -> list[dict[str, Any]]:
        """The data of every event of this kind."""
        return [dict(event.data) for step in self.steps for event in step.events if event.kind is kind]

    def events(self) -> list[EventKind]:
        return [event.kind for step in self.steps for event in step.events]

    def path(self) -> list[tuple[str, str]]:
        """Every edge taken, as ``(word, target)``."""
        moves = [e for step in self.steps for e in step.events if e.kind.value == "transition"]
        return [(str(e.data["action"]), str(e.data["to"])) for e in moves]


def play(text: str, kit: Kit = KIT, *, max_model_len: int | None = None, value: Json = None, **fields: Any) -> Play:
    """A job of this document, bound by its limits as ``submit`` would bind it."""
    machine = machine_of(text, kit)
    deadline = None if machine.deadline_s is None else NOW + timedelta(seconds=machine.deadline_s)
    bounds: dict[str, Any] = {"token_budget": machine.token_budget, "deadline_at": deadline}
    job = Job(JOB, JOB, {} if value is None else value, NOW, **(bounds | fields))
    return Play(machine, job, max_model_len=max_model_len)


def the(kind: type[T], step_or_action: Transition | Command) -> T:
    """The step's action, known to be of this kind."""
    action = getattr(step_or_action, "next", step_or_action)
    assert isinstance(action, kind), action
    return action
