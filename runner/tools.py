"""Running a tool: what it gives is a result or an error, and never an exception."""

from __future__ import annotations

import asyncio
import inspect
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from stepladder.schemas.canonical import canonical
from stepladder.validation.parse import NotJson, parse
from stepladder.validation.schema import Schema, compile_schema
from stepladder.workflows.job import ToolError
from stepladder.workflows.step import ToolFailed, ToolReturned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.schemas.tool import Tool
    from stepladder.workflows.job import ToolCall

MAX_RESULT_BYTES = 1_000_000  # a result is read by templates and rules at every later turn
LONGEST_MESSAGE = 2_000


async def run_tool(tool: Tool, call: ToolCall) -> ToolReturned | ToolFailed:
    """Runs ``tool`` with the arguments and the key of ``call``; a sync function runs in a thread of its own.

    Errors by kind: ``invalid_arguments`` before anything ran, ``bad_result`` for what is no JSON or too much of it,
    else the name of the exception's class.
    """
    schema = _schema(canonical(tool.parameters))
    broken = schema.violations(call.arguments)
    if broken:
        text = "; ".join(f"{violation.pointer or '/'} {violation.reason}" for violation in broken)
        return _failed("invalid_arguments", text)
    arguments: dict[str, Any] = dict(call.arguments)
    if tool.takes_key:
        arguments["idempotency_key"] = call.key
    if not inspect.iscoroutinefunction(inspect.unwrap(tool.function)):
        return await asyncio.to_thread(_call, tool, arguments)
    try:
        return _plain(await tool.function(**arguments))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 -- whatever user code raises is the tool's error
        return _failed(type(error).__name__, str(error))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failed(type(error).__name__, str(error))  # something inside the tool was cancelled, and not the tool


def _call(tool: Tool, arguments: Mapping[str, Any]) -> ToolReturned | ToolFailed:
    """Catches in the thread itself: a future cannot carry ``StopIteration``, and ``SystemExit`` would end the loop."""
    try:
        return _plain(tool.function(**arguments))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 -- whatever user code raises is the tool's error
        return _failed(type(error).__name__, str(error))


def _plain(result: Any) -> ToolReturned | ToolFailed:
    try:
        text = json.dumps(to_jsonable_python(result), ensure_ascii=False)
        content = text.encode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        return _failed("bad_result", f"the result is no JSON: {error}")
    if len(content) > MAX_RESULT_BYTES:
        return _failed("bad_result", f"the result has {len(content):,} bytes; {MAX_RESULT_BYTES:,} are allowed")
    parsed = parse(content)
    return _failed("bad_result", parsed.reason) if isinstance(parsed, NotJson) else ToolReturned(parsed.value)


def _failed(kind: str, message: str) -> ToolFailed:
    return ToolFailed(ToolError(kind, message.encode(errors="replace").decode()[:LONGEST_MESSAGE]))


@lru_cache(maxsize=1000)
def _schema(parameters: bytes) -> Schema:
    schema = compile_schema(json.loads(parameters))
    if not isinstance(schema, Schema):
        raise TypeError(f"a registered tool's schema cannot be used: {schema.violations}")
    return schema
