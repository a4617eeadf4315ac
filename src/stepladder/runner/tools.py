"""Runs a tool. The outcome is a result, an error, or unknown; never an exception."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog
from pydantic_core import PydanticSerializationError, to_jsonable_python

from stepladder.runner.threads import in_thread
from stepladder.schemas.canonical import canonical
from stepladder.schemas.errors import EffectUnknownError, name_of, text_of
from stepladder.schemas.tool import DEFAULT_TIMEOUT_S, Effect
from stepladder.validation.parse import NotJson, parse
from stepladder.validation.schema import Schema, compile_schema
from stepladder.workflows.events import ToolFailed, ToolReturned, ToolUnknown
from stepladder.workflows.visits import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Tool
    from stepladder.workflows.visits import ToolCall

log = structlog.get_logger("stepladder.runner")

ToolOutcome: TypeAlias = ToolReturned | ToolFailed | ToolUnknown

MAX_RESULT_BYTES = 1_000_000  # a result is read by templates and rules at every later turn
_ALLOWED = f"{MAX_RESULT_BYTES:,} are allowed"
MAX_MESSAGE_LENGTH = 2_000
MAX_VIOLATIONS = 5
CLEANUP_S = 1.0
"""How long a cancelled async tool may take to clean up."""


async def run_tool(tool: Tool, call: ToolCall, left_s: float | None = None) -> ToolOutcome:
    """Runs ``tool`` with the arguments and the key of ``call``; a sync function runs in a dedicated thread.

    Errors by kind: ``invalid_arguments`` before anything ran, ``timeout``, ``bad_result`` for a result that is not
    JSON, too large, or breaks the tool's return schema, else the name of the exception's class. The job's deadline is
    ``left_s`` seconds away; it shortens the timeout unless the tool is irreversible. An async tool that times out is
    cancelled. A sync one continues, and its result is dropped. If it is irreversible, its effect is unknown.
    """
    broken = breaks(tool.parameters, call.arguments)
    if broken:
        return _failed("invalid_arguments", _listed(broken))
    bound_s = DEFAULT_TIMEOUT_S if tool.timeout_s is None else tool.timeout_s
    within_s = bound_s if left_s is None or tool.effect is Effect.IRREVERSIBLE else min(bound_s, left_s)
    why = "" if within_s == bound_s else ", the time left until the job's deadline"
    if within_s <= 0:
        return _failed("timeout", f"not run: the timeout is {max(within_s, 0):g} s{why}")
    arguments: dict[str, Any] = dict(call.arguments)
    if tool.takes_key:
        arguments["idempotency_key"] = call.key
    try:
        run = _begin(tool, call, arguments)
    except RuntimeError as error:  # no thread could be started, so nothing ran
        return _failed(type(error).__name__, str(error))
    try:
        await asyncio.wait((run,), timeout=within_s)
        if run.cancelled():
            return _failed("CancelledError", "the tool cancelled itself")
        if run.done():
            return run.result()
    finally:
        if not run.done():
            run.cancel()
            await asyncio.wait((run,), timeout=CLEANUP_S)
    log.warning("tool timed out", tool=tool.name, state=call.state, within_s=within_s, stopped=run.done())
    late = ToolError("timeout", f"no result within {round(within_s, 3):g} s{why}")
    return ToolUnknown(late) if tool.effect is Effect.IRREVERSIBLE else ToolFailed(late)


def _begin(tool: Tool, call: ToolCall, arguments: Mapping[str, Any]) -> asyncio.Future[ToolOutcome]:
    late = partial(_drop, tool, call)
    if not inspect.iscoroutinefunction(inspect.unwrap(tool.function)):
        run = partial(tool.function, **arguments)
        return in_thread(partial(_guarded, tool, run), late, name=f"tool {tool.name}")
    return asyncio.ensure_future(_await(tool, arguments, late))


def _drop(tool: Tool, call: ToolCall, outcome: ToolOutcome) -> None:
    """Logs that the call returned after all, for the person who settles it."""
    kind = "result" if isinstance(outcome, ToolReturned) else outcome.error.kind
    log.warning("tool returned too late", tool=tool.name, state=call.state, key=call.key, outcome=kind)


async def _await(tool: Tool, arguments: Mapping[str, Any], late: Callable[[ToolOutcome], None]) -> ToolOutcome:
    try:
        result = await tool.function(**arguments)
    except GeneratorExit:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _raised(tool, error)  # something inside the tool was cancelled, and not the tool
    except BaseException as error:  # noqa: BLE001 -- anything that user code raises is the tool's error
        return _raised(tool, error)
    # Off the loop: what it returns may be large, or objects that run code of their own.
    return await in_thread(partial(_guarded, tool, lambda: result), late, name=f"result of {tool.name}")


def _guarded(tool: Tool, run: Callable[[], Any]) -> ToolOutcome:
    """Catches in the thread itself: a future cannot carry ``StopIteration``, and ``SystemExit`` would end the loop."""
    try:
        return _plain(tool, run())
    except BaseException as error:  # noqa: BLE001 -- as above
        return _raised(tool, error)


def _raised(tool: Tool, error: BaseException) -> ToolFailed | ToolUnknown:
    if isinstance(error, EffectUnknownError) and tool.effect is Effect.IRREVERSIBLE:
        return ToolUnknown(_error("effect_unknown", text_of(error)))
    return _failed(name_of(error), text_of(error))


def _plain(tool: Tool, result: Any) -> ToolReturned | ToolFailed:
    if isinstance(result, Iterator):
        result = list(islice(result, MAX_RESULT_BYTES))
    if _is_too_large(result):
        return _failed("bad_result", f"the result has too many bytes, or holds itself; {_ALLOWED}")
    try:
        content = json.dumps(to_jsonable_python(result), ensure_ascii=False).encode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        return _failed("bad_result", f"the result is not JSON: {text_of(error)}")
    if len(content) > MAX_RESULT_BYTES:
        return _failed("bad_result", f"the result has {len(content):,} bytes; {_ALLOWED}")
    parsed = parse(content)
    if isinstance(parsed, NotJson):
        return _failed("bad_result", parsed.reason)
    broken = breaks(tool.returns, parsed.value)
    if broken:
        return _failed("bad_result", f"the result breaks the return schema of {tool.name}: {_listed(broken)}")
    return ToolReturned(parsed.value)


def _is_too_large(result: Any) -> bool:
    """Whether plain containers and texts alone have more bytes than are allowed, before they are copied for seconds.

    Written out, a list that holds another ten times over is ten times as long, and one that holds itself endless.
    """
    size, rest = 0, [result]
    while rest and size <= MAX_RESULT_BYTES:
        one = rest.pop()
        if type(one) in (str, bytes):
            size += len(one)
        elif type(one) in (list, tuple, set, frozenset, dict):
            size += len(one)
            if size <= MAX_RESULT_BYTES:
                rest.extend(one.values() if type(one) is dict else one)
        size += 1
    return size > MAX_RESULT_BYTES


def breaks(schema: JsonObject, value: Json) -> tuple[Violation, ...]:
    """The violations of a tool's parameter or return schema."""
    return _schema(canonical(schema)).violations(value) if schema else ()


@lru_cache(maxsize=1000)
def _schema(schema: bytes) -> Schema:
    compiled = compile_schema(json.loads(schema))
    if not isinstance(compiled, Schema):
        raise TypeError(f"a registered tool's schema cannot be used: {compiled.violations}")
    return compiled


def _listed(broken: tuple[Violation, ...]) -> str:
    more = f"; and {len(broken) - MAX_VIOLATIONS} more" if len(broken) > MAX_VIOLATIONS else ""
    return "; ".join(f"{violation.pointer or '/'} {violation.reason}" for violation in broken[:MAX_VIOLATIONS]) + more


def _failed(kind: str, message: str) -> ToolFailed:
    return ToolFailed(_error(kind, message))


def _error(kind: str, message: str) -> ToolError:
    return ToolError(kind, message[:MAX_MESSAGE_LENGTH].encode(errors="replace").decode())
