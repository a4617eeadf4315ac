"""The decorators by which user code gives documents its tools and rules."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, create_model, validate_call
from pydantic.errors import PydanticSchemaGenerationError

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.tool import Effect, Kit, RuleFunction, Tool

F = TypeVar("F", bound=Callable[..., Any])
KEY = "idempotency_key"

_tools: dict[str, Tool] = {}
_rules: dict[str, RuleFunction] = {}


def tool(
    name: str, *, effect: str, permissions: Sequence[str] = (), timeout_s: float | None = None
) -> Callable[[F], F]:
    """Registers a function, sync or async, as the tool ``name``; the signature gives the schema of its arguments.

    ``effect`` is ``read``, ``idempotent`` or ``irreversible``. ``permissions`` are the scopes that a job's principal
    needs. A parameter ``idempotency_key`` is filled by the machine and is not part of the schema. The function
    returns JSON, by the schema of its return annotation if pydantic can derive one; an exception is the tool's error,
    routed by the edge ``error``. A run may take ``timeout_s`` seconds, or 300 if neither this nor the document sets a
    number.

    Raises ``BadInputError`` for an unknown effect, a time below 0, a name registered twice, or a signature with no
    JSON Schema.
    """
    if timeout_s is not None and not 0 <= timeout_s < math.inf:
        raise BadInputError(f"tool {name!r} has the timeout_s {timeout_s}", remedy="write seconds, 0 or more")
    try:
        known = Effect(effect)
    except ValueError:
        words = ", ".join(Effect)
        raise BadInputError(f"tool {name!r} has the effect {effect!r}", remedy=f"write one of {words}") from None

    def register(function: F) -> F:
        _once("tool", name, _tools.get(name), function)
        takes_key = KEY in inspect.signature(function).parameters
        description = inspect.getdoc(function) or ""
        parameters = _parameters(name, function)
        checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)
        returns = _returns(function)
        _tools[name] = Tool(
            name, known, parameters, checked, tuple(permissions), description, takes_key, returns, timeout_s
        )
        return function

    return register


def rule(name: str) -> Callable[[F], F]:
    """Registers ``(output, *, input, turns, tools) -> str | None`` as a rule: None holds, text is the reason.

    Raises ``BadInputError`` for a name registered twice.
    """

    def register(function: F) -> F:
        _once("rule", name, _rules.get(name), function)
        _rules[name] = function
        return function

    return register


def registered() -> Kit:
    """All that has been registered in this process so far."""
    return Kit(dict(_tools), dict(_rules))


def _once(what: str, name: str, known: Tool | RuleFunction | None, function: Callable[..., Any]) -> None:
    before = known.function if isinstance(known, Tool) else known
    if before is None or _source(before) == _source(function):  # the module is imported again
        return
    message = f"the {what} {name!r} is registered twice, by {_place(before)} and {_place(function)}"
    raise BadInputError(message, remedy="give one of them another name")


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _source(function: Callable[..., Any]) -> tuple[str, str]:
    """The file and the name: the same for any name under which the module is imported."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    return (plain.__module__ if code is None else code.co_filename), plain.__qualname__


def _parameters(name: str, function: Callable[..., Any]) -> Mapping[str, Any]:
    """The JSON Schema of the arguments as one object, with every local reference written out."""
    fields: dict[str, Any] = {}
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise BadInputError(f"tool {name!r}: {error}", remedy="annotate with types that its module knows") from error
    for word, parameter in signature.parameters.items():
        if word == KEY:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            message = f"tool {name!r} takes {parameter}, for which no JSON Schema can be written"
            raise BadInputError(message, remedy="give each argument its own name and type")
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        default = ... if parameter.default is parameter.empty else parameter.default
        # A generated name for the field: pydantic drops or renames some that Python allows, such as `_x` and `json`.
        fields[f"argument_{len(fields)}"] = (annotation, Field(default, alias=word))
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = model.model_json_schema()
        json.dumps(schema, allow_nan=False)
    except (PydanticUserError, PydanticSchemaGenerationError, ValueError) as error:
        message = f"tool {name!r}: no JSON Schema can be written for its signature: {str(error).splitlines()[0]}"
        raise BadInputError(message, remedy="annotate its arguments with types that pydantic knows") from error
    definitions = schema.pop("$defs", {})
    written: dict[str, Any] = _written_out(name, schema, definitions, ())
    return {word: value for word, value in written.items() if word not in ("title", "description")}


def _returns(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The JSON Schema of the result; empty, which allows anything, if pydantic cannot derive one."""
    annotation = inspect.signature(function, eval_str=True).return_annotation
    if annotation is inspect.Signature.empty:
        return {}
    try:
        schema = TypeAdapter(annotation).json_schema(mode="serialization")
        json.dumps(schema, allow_nan=False)
    except (PydanticUserError, PydanticSchemaGenerationError, ValueError):
        return {}
    return schema


def _written_out(tool_name: str, schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_written_out(tool_name, item, definitions, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = reference.removeprefix("#/$defs/")
        if target in inside:
            message = f"tool {tool_name!r}: the type {target} is recursive, and an argument's schema must be finite"
            raise BadInputError(message, remedy="bound its depth with a separate type for each level")
        rest = {word: value for word, value in schema.items() if word != "$ref"}
        return _written_out(tool_name, {**definitions[target], **rest}, definitions, (*inside, target))
    titles = {word: value for word, value in schema.items() if word != "title" or not isinstance(value, str)}
    return {word: _written_out(tool_name, value, definitions, inside) for word, value in titles.items()}
