"""From a document and the user's code to a machine, or to everything that is wrong with the document, at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, assert_never

from stepladder.lint import graph, plans
from stepladder.lint.audit.remark import Role
from stepladder.lint.names import too_early, unknown_members
from stepladder.lint.pieces import Pieces
from stepladder.lint.schemas import Audit
from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.tool import DEFAULT_TIMEOUT_S, Effect, Kit, Tool
from stepladder.validation.schema import BadSchema, compile_schema
from stepladder.workflows.actions import Actions, actions_of, with_tools
from stepladder.workflows.describe import describe
from stepladder.workflows.machine import (
    ALWAYS,
    EXHAUSTED,
    AskState,
    EndState,
    LoopLimits,
    Machine,
    State,
    ToolState,
    WaitState,
)

if TYPE_CHECKING:
    from stepladder.validation.schema import Schema

DEFAULT_MAX_COMPLETION_TOKENS = 512


def _timeout_s(state: doc.Call, tool: Tool) -> float:
    said = [seconds for seconds in (state.timeout_s, tool.timeout_s) if seconds is not None]
    return min(said, default=DEFAULT_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Compiled:
    """``machine`` is None where any finding is an error; warnings stand beside a machine that works."""

    machine: Machine | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that keep the document out."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


UNPINNED = Audit()


def compile_workflow(document: doc.Workflow, kit: Kit, audit: Audit | None = UNPINNED) -> Compiled:
    """Checks a document whole and compiles it. ``kit`` holds the tools and rules that it may name.

    ``audit`` is None for what was registered already: an audit that has learned something since stops no job.
    """
    compiler = _Compiler(document, kit, audit)
    machine = compiler.machine()
    failed = any(finding.severity is Severity.ERROR for finding in compiler.pieces.findings)
    return Compiled(None if failed else machine, tuple(compiler.pieces.findings))


class _Compiler:
    def __init__(self, document: doc.Workflow, kit: Kit, audit: Audit | None) -> None:
        self.document = document
        self.pieces = Pieces(document, kit, audit)

    def machine(self) -> Machine | None:
        document = self.document
        self.pieces.findings.extend(graph.check_targets(document.states, document.start))
        runs = {name: self._runs(name, state) for name, state in document.states.items() if isinstance(state, doc.Call)}
        irreversible = {
            name for name, tools in runs.items() if any(tool.effect is Effect.IRREVERSIBLE for tool in tools.values())
        }
        self.pieces.findings.extend(graph.check_irreversible(document.states, document.start, irreversible))
        self.pieces.findings.extend(graph.check_degrade(document.states))
        input_schema = self.pieces.schema(document.input, ("input",))
        system = (
            None if document.system is None else self.pieces.template(document.system, ("system",), roots=("input",))
        )
        states = {name: self._state(name, state, runs, irreversible) for name, state in document.states.items()}
        compiled = {name: state for name, state in states.items() if state is not None}
        if self.pieces.audit is not None:
            sound = all(finding.severity is not Severity.ERROR for finding in self.pieces.findings)
            self.pieces.findings.extend(unknown_members(self.pieces.reads, document.input, compiled))
            self.pieces.findings.extend(too_early(self.pieces.reads, document.states) if sound else ())
        if input_schema is None or len(compiled) < len(states):
            return None
        limits = document.limits
        loop = None if isinstance(limits.loop, str) else LoopLimits(limits.loop.repeats, limits.loop.stale)
        return Machine(
            document=document,
            hash=document.hash(),
            input=input_schema,
            system=system,
            start=document.start,
            states=compiled,
            max_turns=limits.max_turns,
            token_budget=limits.token_budget,
            deadline_s=limits.deadline_s,
            loop=loop,
        )

    def _state(
        self, name: str, state: doc.State, runs: Mapping[str, Mapping[str, Tool]], irreversible: set[str]
    ) -> State | None:
        match state:
            case doc.Ask():
                return self._ask(name, state)
            case doc.Call():
                return self._call(name, state, runs[name])
            case doc.Wait():
                return self._wait(name, state, irreversible)
            case doc.ChildWorkflow():
                return plans.child_state(self.pieces, name, state)
            case doc.End():
                result = self.pieces.shape(state.result, ("states", name, "result"))
                return EndState(name, state.end == "succeeded", result)
            case _:
                assert_never(state)

    def _ask(self, name: str, state: doc.Ask) -> AskState | None:
        where = ("states", name)
        question = self.pieces.template(state.ask, (*where, "ask"), plans.list_roots(state))
        rules = self.pieces.rules(state.rules, (*where, "rules"), plans.list_roots(state))
        plans.check_each_names(self.pieces, name, state)
        schema = self._output(state, where)
        if schema is None:
            return None
        root = schema.schema if isinstance(schema.schema, Mapping) else {}
        plan = plans.list_plan(self.pieces, name, state, actions_of(root), root)
        if plan is None:
            self.pieces.findings.extend(graph.check_ask_words(name, state, actions_of(root)))
        if question is None:
            return None
        chosen: dict[str, Any] = {}
        for choice in (self.document, state):
            for field in ("model", "decoding", "stream", "max_completion_tokens"):
                if getattr(choice, field) is not None:
                    chosen[field] = getattr(choice, field)
        sampling: dict[str, Any] = {}
        for drawn in (self.document.sampling, state.sampling):
            sampling |= {} if drawn is None else drawn.model_dump(exclude_none=True)
        retry = state.retry or self.document.retry or doc.Retry()
        strict = chosen.get("decoding", "strict") == "strict"
        edges = {ALWAYS: state.next} if isinstance(state.next, str) else state.next
        return AskState(
            name=name,
            question=question,
            schema=schema,
            description=describe(root, strict=strict),
            rules=rules,
            max_completion_tokens=chosen.get("max_completion_tokens", DEFAULT_MAX_COMPLETION_TOKENS),
            sampling=sampling,
            attempts=retry.attempts,
            transport=retry.transport,
            always=edges.get(ALWAYS),
            edges={word: target for word, target in edges.items() if word not in (ALWAYS, EXHAUSTED)},
            on_failure=state.on_failure,
            max_visits=state.max_visits,
            exhausted=edges.get(EXHAUSTED),
            history=0 if state.history == "none" else state.history,
            model=chosen.get("model"),
            strict=strict,
            stream=chosen.get("stream", True),
            loop=state.loop == "on",
            degrade=state.degrade,
            each=plan,
        )

    def _output(self, state: doc.Ask, where: tuple[str, ...]) -> Schema | None:
        if state.output is None and not state.tools:
            self.pieces.find(
                "no_output", where, "the turn has neither `output` nor `tools`", "add `output: {a JSON Schema}`"
            )
            return None
        decoding = state.decoding or self.document.decoding
        role = Role.PROMPTED if decoding == "prompt" else Role.DECODED
        own = None if state.output is None else self.pieces.schema(state.output, (*where, "output"), role)
        if state.output is not None and own is None:
            return None
        tools = [self.pieces.tool(tool, (*where, "tools", index)) for index, tool in enumerate(state.tools)]
        for index, chosen in enumerate(tools):
            if chosen is not None:
                self.pieces.arguments(chosen, (*where, "tools", index), role)
        if any(tool is None for tool in tools):
            return None
        if not tools:
            return own
        actions = actions_of(state.output or {})
        if actions.open:
            message = "`action` may be any string, including a tool's name with arguments that its schema never checked"
            self.pieces.find("open_action", (*where, "output"), message, "list the words of `action` in an enum")
        taken = set(actions.words)
        for index, tool in enumerate(state.tools):
            if tool in taken:
                message = f"the action `{tool}` means both this tool and an action of the output"
                self.pieces.find("action_twice", (*where, "tools", index), message, "rename one of them")
            taken.add(tool)
        schema = with_tools(state.output, [tool for tool in tools if tool is not None])
        return self.pieces.joined_schema(schema, (*where, "tools"))

    def _call(self, name: str, state: doc.Call, runs: Mapping[str, Tool]) -> ToolState:
        self.pieces.findings.extend(graph.check_tool_words(name, state))
        chosen_by = None if isinstance(state.tool, str) else state.tool.from_
        edges = {word: target for word, target in state.next.items() if word != EXHAUSTED}
        arguments = self.pieces.shape(state.arguments, ("states", name, "arguments"))
        if chosen_by is None and state.arguments is None:
            arguments = {}
        attempts = 1 if state.retry is None else state.retry.attempts
        once = [tool.name for tool in runs.values() if tool.effect is Effect.IRREVERSIBLE]
        if once and state.retry is not None:
            message = f"`{once[0]}` is irreversible, so it runs at most once and is never retried"
            self.pieces.find("retry_irreversible", ("states", name, "retry"), message, "remove `retry`")
        return ToolState(name, runs, chosen_by, arguments, edges, state.max_visits, state.next.get(EXHAUSTED), attempts)

    def _runs(self, name: str, state: doc.Call) -> Mapping[str, Tool]:
        """The tools that a state may run, each with the bound on its time that holds there."""
        tools = self._named(name, state)
        chosen = not isinstance(state.tool, str)  # the turn's output holds the arguments' schema then, and is checked
        for tool in tools.values():
            for what, schema in (("arguments", {} if chosen else tool.parameters), ("result", tool.returns)):
                if isinstance(bad := compile_schema(schema), BadSchema):
                    why = f"{bad.violations[0].pointer} {bad.violations[0].reason}"
                    message = f"the schema of the {what} of `{tool.name}` cannot be used: {why}"
                    self.pieces.find("bad_tool", ("states", name, "tool"), message, "annotate it with other types")
        return {word: replace(tool, timeout_s=_timeout_s(state, tool)) for word, tool in tools.items()}

    def _named(self, name: str, state: doc.Call) -> Mapping[str, Tool]:
        where = ("states", name, "tool")
        if isinstance(state.tool, str):
            tool = self.pieces.tool(state.tool, where)
            if tool is None:
                return {}
            if state.effect is not None and state.effect is not tool.effect:
                message = f"the effect of `{tool.name}` is {state.effect} here, and {tool.effect} in its code"
                self.pieces.find("effect_differs", ("states", name, "effect"), message, "make the two agree")
            return {tool.name: tool}
        turn = self.document.states.get(state.tool.from_)
        if not isinstance(turn, doc.Ask) or not turn.tools:
            message = f"`{state.tool.from_}` is not a turn that chooses a tool"
            self.pieces.find("no_choice", where, message, "name a state that has `ask` and `tools`")
            return {}
        return {word: self.pieces.kit.tools[word] for word in turn.tools if word in self.pieces.kit.tools}

    def _wait(self, name: str, state: doc.Wait, irreversible: set[str]) -> WaitState:
        where = ("states", name, "wait")
        schema = None if state.wait.schema_ is None else self.pieces.schema(state.wait.schema_, (*where, "schema"))
        actions = actions_of(state.wait.schema_) if state.wait.schema_ is not None else Actions(open=True)
        self.pieces.findings.extend(graph.check_wait_words(name, state, actions))
        return WaitState(
            name=name,
            signal=state.wait.signal,
            schema=schema,
            show=self.pieces.shape(state.wait.show, (*where, "show")),
            timeout_s=state.wait.timeout_s,
            edges=state.next,
            freezes=tuple(dict.fromkeys(target for target in state.next.values() if target in irreversible)),
            by_other=state.wait.by == "other",
            scopes=tuple(state.wait.scopes),
        )
