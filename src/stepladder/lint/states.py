"""Compiles the states of a document, one function for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from stepladder.lint.actions import Actions, actions_of, with_tools
from stepladder.lint.audit.remark import Role
from stepladder.lint.members import Presence, member
from stepladder.lint.transitions import check_ask, check_call, check_wait, next_of
from stepladder.schemas import document as doc
from stepladder.schemas.finding import Severity
from stepladder.schemas.pointer import pointer_steps
from stepladder.schemas.tool import DEFAULT_TIMEOUT_S, Effect
from stepladder.validation.schema import BadSchema, Schema, compile_schema
from stepladder.workflows.describe import describe
from stepladder.workflows.lists import UNIQUE
from stepladder.workflows.machine import (
    ALWAYS,
    EXHAUSTED,
    AskState,
    ChildState,
    EndState,
    ListPlan,
    State,
    ToolState,
    WaitState,
)
from stepladder.workflows.names import EACH, ROOTS

if TYPE_CHECKING:
    from stepladder.lint.pieces import Pieces, Where
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Tool

DEFAULT_MAX_COMPLETION_TOKENS = 512
IN_LIST = ("index", "count", "item", "elements")
IN_CALL = ("index", "count", "item")

Tools = Mapping[str, Mapping[str, "Tool"]]
"""For each state with ``tool``, the tools that it may run."""


def compile_state(pieces: Pieces, name: str, state: doc.State, tools: Tools, irreversible: set[str]) -> State | None:
    """None where an error leaves no state to run. ``irreversible`` are the states that run an irreversible tool."""
    match state:
        case doc.Ask():
            return _ask(pieces, name, state)
        case doc.Call():
            return _call(pieces, name, state, tools[name])
        case doc.Wait():
            return _wait(pieces, name, state, irreversible)
        case doc.ChildWorkflow():
            return _child(pieces, name, state)
        case doc.End():
            return EndState(name, state.end == "succeeded", pieces.shape(state.result, ("states", name, "result")))
        case _:
            assert_never(state)


# Turns ---------------------------------------------------------------------------------------------------------------


def _ask(pieces: Pieces, name: str, state: doc.Ask) -> AskState | None:
    where, roots = ("states", name), ROOTS if state.each is None else (*ROOTS, EACH)
    question = pieces.template(state.ask, (*where, "ask"), roots)
    rules = pieces.rules(state.rules, (*where, "rules"), roots)
    strict = (state.decoding or pieces.document.decoding or "strict") == "strict"
    schema = _output(pieces, state, where, Role.DECODED if strict else Role.PROMPTED)
    if state.each is not None:
        _check_each_names(pieces, name, IN_LIST, over=state.each.over)
    if schema is None or schema.upgraded is None:
        return None
    root = schema.upgraded.schema if isinstance(schema.upgraded.schema, Mapping) else {}
    pieces.schemas["turns", name] = root
    pieces.findings.extend(check_ask(name, state, actions_of(root)))
    each = None if state.each is None else _list_plan(pieces, name, state, state.each, root)
    if question is None or isinstance(schema, BadSchema):
        return None
    chosen: dict[str, Any] = {"stream": True, "max_completion_tokens": DEFAULT_MAX_COMPLETION_TOKENS, "model": None}
    sampling: dict[str, Any] = {}
    for choice in (pieces.document, state):
        chosen |= {field: value for field in chosen if (value := getattr(choice, field)) is not None}
        sampling |= {} if choice.sampling is None else choice.sampling.model_dump(exclude_none=True)
    retry = state.retry or pieces.document.retry or doc.Retry()
    edges = next_of(state)
    return AskState(
        name=name,
        question=question,
        schema=schema,
        description=describe(root, strict=strict),
        rules=rules,
        sampling=sampling,
        attempts=retry.attempts,
        transport=retry.transport,
        always=edges.get(ALWAYS),
        edges={word: target for word, target in edges.items() if word not in (ALWAYS, EXHAUSTED)},
        on_failure=state.on_failure,
        max_visits=state.max_visits,
        exhausted=edges.get(EXHAUSTED),
        history=0 if state.history == "none" else state.history,
        strict=strict,
        loop=state.loop == "on",
        degrade=state.degrade,
        each=each,
        **chosen,
    )


def _output(pieces: Pieces, state: doc.Ask, where: Where, role: Role) -> Schema | BadSchema | None:
    """The schema of a turn's answers: its own output, and one branch for each of its tools. None if there is none."""
    if state.output is None and not state.tools:
        message = "the turn has neither `output` nor `tools`"
        pieces.find("no_output", where, message, "add `output: {a JSON Schema}`")
        return None
    own = None if state.output is None else pieces.schema(state.output, (*where, "output"), role)
    tools = [pieces.tool(tool, (*where, "tools", index)) for index, tool in enumerate(state.tools)]
    known = [tool for tool in tools if tool is not None]
    for index, tool in enumerate(tools):
        if tool is not None:
            pieces.arguments(tool, (*where, "tools", index), role)
    if not tools:
        return own
    if isinstance(own, BadSchema) or len(known) < len(tools):
        return None
    output = own.schema if own is not None and isinstance(own.schema, Mapping) else None
    actions = actions_of(output or {})
    if actions.open:
        message = "`action` may be any string, including a tool's name with arguments that its schema never checked"
        pieces.find("open_action", (*where, "output"), message, "list the words of `action` in an enum")
    taken = set(actions.words)
    for index, word in enumerate(state.tools):
        if word in taken:
            message = f"the action `{word}` means both this tool and another action"
            pieces.find("action_twice", (*where, "tools", index), message, "rename one of them")
        taken.add(word)
    return pieces.joined_schema(with_tools(output, known), (*where, "tools"))


def _list_plan(pieces: Pieces, name: str, state: doc.Ask, each: doc.Each, root: Json) -> ListPlan:
    where = ("states", name, "each")
    if state.tools:
        remedy = "build the list first, and let another turn choose"
        pieces.find("each_with_tools", ("states", name, "tools"), "a turn with `each` cannot choose a tool", remedy)
    most = pieces.document.limits.max_turns
    if each.at_most > most:
        message = f"a list of {each.at_most} elements takes as many turns, and limits.max_turns is {most}"
        remedy = "raise limits.max_turns"
        pieces.find("list_beyond_max_turns", (*where, "at_most"), message, remedy, Severity.WARNING)
    if each.unique and any(rule.id == UNIQUE for rule in state.rules):
        message = f"the rule id `{UNIQUE}` belongs to `each.unique`"
        pieces.find("rule_twice", ("states", name, "rules"), message, "use another id")
    for index, unique in enumerate(each.unique):
        _check_unique(pieces, (*where, "unique", index), unique, root)
    return ListPlan(
        over=None if each.over is None else pieces.expression(each.over, (*where, "over")),
        count=None if each.count is None else pieces.expression(each.count, (*where, "count")),
        until=each.until,
        at_most=each.at_most,
        unique=tuple(each.unique),
    )


def _check_unique(pieces: Pieces, where: Where, name: str, root: Json) -> None:
    path = pointer_steps(name)
    if any(step.isdecimal() for step in path):
        return  # the schema says little about single items of an element's own lists
    found = member(root, path)
    if found.presence is Presence.IMPOSSIBLE:
        remedy = f"its members are {', '.join(found.beside)}" if found.beside else "fix the pointer, or the schema"
        pieces.find("unknown_member", where, f"an element never has `{name}`", remedy)


def _check_each_names(pieces: Pieces, state: str, known: tuple[str, ...], *, over: str | None) -> None:
    """``each.item`` exists only where there is something to go over."""
    if over is None:
        known = tuple(word for word in known if word != "item")
    for read in pieces.reads:
        if read.where[:2] == ("states", state) and read.path[0] == EACH and read.path[1:] and read.path[1] not in known:
            message = f"`{EACH}.{read.path[1]}` can never exist: `{EACH}` holds {', '.join(known)}"
            pieces.find("unknown_name", read.where, message)


# Tools ---------------------------------------------------------------------------------------------------------------


def tools_of(pieces: Pieces, name: str, state: doc.Call) -> Mapping[str, Tool]:
    """The tools that a state may run, each with the timeout that applies there."""
    where = ("states", name, "tool")
    if isinstance(state.tool, str):
        tool = pieces.tool(state.tool, where)
        tools = {} if tool is None else {tool.name: tool}
        if tool is not None and state.effect is not None and state.effect is not tool.effect:
            message = f"the effect of `{tool.name}` is {state.effect} here, and {tool.effect} in its code"
            pieces.find("effect_differs", ("states", name, "effect"), message, "make the two agree")
    else:
        tools = _choice(pieces, state.tool.from_, where)
    for tool in tools.values():
        # The arguments of a tool that a turn chooses are part of that turn's schema, and are checked there.
        parameters = tool.parameters if isinstance(state.tool, str) else {}
        for what, schema in (("arguments", parameters), ("result", tool.returns)):
            if isinstance(bad := compile_schema(schema), BadSchema):
                why = f"{bad.violations[0].pointer} {bad.violations[0].reason}"
                message = f"the schema of the {what} of `{tool.name}` cannot be used: {why}"
                pieces.find("bad_tool", where, message, "annotate it with other types")
    return {word: replace(tool, timeout_s=_timeout_s(state, tool)) for word, tool in tools.items()}


def _choice(pieces: Pieces, turn: str, where: Where) -> dict[str, Tool]:
    state = pieces.document.states.get(turn)
    if not isinstance(state, doc.Ask) or not state.tools:
        message = f"`{turn}` is not a turn that chooses a tool"
        pieces.find("no_choice", where, message, "name a state that has `ask` and `tools`")
        return {}
    return {word: pieces.kit.tools[word] for word in state.tools if word in pieces.kit.tools}


def _timeout_s(state: doc.Call, tool: Tool) -> float:
    set_ones = [seconds for seconds in (state.timeout_s, tool.timeout_s) if seconds is not None]
    return min(set_ones, default=DEFAULT_TIMEOUT_S)


def _call(pieces: Pieces, name: str, state: doc.Call, tools: Mapping[str, Tool]) -> ToolState:
    pieces.findings.extend(check_call(name, state))
    if len(tools) == 1:
        pieces.schemas["tools", name] = next(iter(tools.values())).returns
    chosen_by = None if isinstance(state.tool, str) else state.tool.from_
    arguments = pieces.shape(state.arguments, ("states", name, "arguments"))
    if chosen_by is None and state.arguments is None:
        arguments = {}
    irreversible = [tool.name for tool in tools.values() if tool.effect is Effect.IRREVERSIBLE]
    if irreversible and state.retry is not None:
        message = f"`{irreversible[0]}` is irreversible, so it runs at most once and is never retried"
        pieces.find("retry_irreversible", ("states", name, "retry"), message, "remove `retry`")
    attempts = 1 if state.retry is None else state.retry.attempts
    edges, exhausted = _edges(state)
    return ToolState(name, tools, chosen_by, arguments, edges, state.max_visits, exhausted, attempts)


# Waits and child jobs ------------------------------------------------------------------------------------------------


def _wait(pieces: Pieces, name: str, state: doc.Wait, irreversible: set[str]) -> WaitState:
    where, wait = ("states", name, "wait"), state.wait
    schema = None if wait.schema_ is None else pieces.schema(wait.schema_, (*where, "schema"), name=("signals", name))
    actions = Actions(open=True) if schema is None or schema.upgraded is None else actions_of(schema.upgraded.schema)
    pieces.findings.extend(check_wait(name, state, actions))
    return WaitState(
        name=name,
        signal=wait.signal,
        schema=schema if isinstance(schema, Schema) else None,
        show=pieces.shape(wait.show, (*where, "show")),
        timeout_s=wait.timeout_s,
        edges=state.next,
        freezes=tuple(dict.fromkeys(target for target in state.next.values() if target in irreversible)),
        by_other=wait.by == "other",
        scopes=tuple(wait.scopes),
    )


def _child(pieces: Pieces, name: str, state: doc.ChildWorkflow) -> ChildState:
    """Whether the workflow is published is checked when the call starts."""
    where, each = ("states", name), state.each
    pieces.findings.extend(check_call(name, state))
    inputs = pieces.shape(state.input, (*where, "input"), ROOTS if each is None else (*ROOTS, EACH))
    if each is not None:
        _check_each_names(pieces, name, IN_CALL, over=each.over)
    edges, exhausted = _edges(state)
    return ChildState(
        name=name,
        workflow=state.call,
        version=state.version,
        inputs={} if inputs is None else inputs,
        over=None if each is None else pieces.expression(each.over, (*where, "each", "over")),
        at_most=1 if each is None else each.at_most,
        concurrency=1 if each is None else each.concurrency,
        collect=each is not None and each.failures == "collect",
        edges=edges,
        max_visits=state.max_visits,
        exhausted=exhausted,
    )


def _edges(state: doc.Call | doc.ChildWorkflow) -> tuple[dict[str, str], str | None]:
    return {word: target for word, target in state.next.items() if word != EXHAUSTED}, state.next.get(EXHAUSTED)
