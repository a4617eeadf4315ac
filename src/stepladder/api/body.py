"""Reading a request's body: bounded while it is read, and strict about what is JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from stepladder.api.problems import Mistake, ProblemError, invalid
from stepladder.schemas.outcomes import Cause
from stepladder.schemas.pointer import pointer
from stepladder.validation.parse import Limits, NotJson, parse

if TYPE_CHECKING:
    from starlette.requests import Request

    from stepladder.schemas.jsontypes import Json

Model = TypeVar("Model", bound=BaseModel)

MAX_BYTES = 1024 * 1024
MAX_BATCH_BYTES = 16 * MAX_BYTES
MAX_DEPTH = 64
READ_WITHIN_S = 60.0

JSON_TYPES = ("application/json", "text/json")
UNSAID = ("", "application/x-www-form-urlencoded")
"""Content types that clients send by default; curl and urllib send the latter."""


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, limit: int = MAX_BYTES) -> bytes:
    """The body as received. A 413 as soon as it exceeds ``limit``, before the rest is read."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "unsupported-encoding", "the body is compressed", remedy="send it uncompressed")
    if int(request.headers.get("content-length", "0")) > limit:  # the server has checked that it is a number
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        detail = f"the body did not arrive within {READ_WITHIN_S:g} seconds"
        raise ProblemError(408, "request-timeout", detail, remedy="send it again; nothing was done") from None
    except ClientDisconnect:  # no client is left to read the problem; it is logged
        raise ProblemError(400, "broken-off", "the client disconnected while sending its body") from None
    return b"".join(chunks)


async def read_json(request: Request, limit: int = MAX_BYTES) -> Json:
    """The body as one JSON document, parsed as strictly as a model's answer."""
    kind = media_type(request)
    if kind not in JSON_TYPES + UNSAID and not kind.endswith("+json"):
        detail, remedy = f"the body is {kind}", "send JSON, and say Content-Type: application/json"
        raise ProblemError(415, "unsupported-media-type", detail, remedy=remedy)
    parsed = parse(await read_body(request, limit), Limits(max_bytes=limit, max_depth=MAX_DEPTH))
    if isinstance(parsed, NotJson):
        unit = "byte" if parsed.cause is Cause.BAD_UNICODE else "character"
        reason = f"{parsed.reason.replace('the answer', 'the body', 1)} ({parsed.cause}, at {unit} {parsed.offset})"
        detail = "the body is not one JSON document"
        raise ProblemError(400, "bad-json", detail, mistakes=[Mistake(reason)], remedy="fix it; nothing was done")
    return parsed.value


def shaped(model: type[Model], value: Json) -> Model:
    """The body as ``model``, or a problem with every mistake in it."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        mistakes = [_mistake(found) for found in error.errors(include_url=False)]
        count = f"{len(mistakes)} mistake" + ("" if len(mistakes) == 1 else "s")
        raise invalid(f"the body has {count}", mistakes, "fix them; nothing was done") from None


def _mistake(found: Any) -> Mistake:
    path = [step for step in found["loc"] if step != "[key]"]
    match found["type"]:
        case "missing":
            return Mistake(f"the field `{path[-1]}` is missing", pointer(path[:-1]))
        case "extra_forbidden":
            return Mistake(f"there is no field `{path[-1]}` here", pointer(path))
        case "value_error":
            return Mistake(str(found["ctx"]["error"]), pointer(path))
        case _:
            return Mistake(found["msg"][0].lower() + found["msg"][1:], pointer(path))


def _too_large(limit: int) -> ProblemError:
    detail = f"the body has more than {limit:,} bytes"
    return ProblemError(413, "body-too-large", detail, remedy="send less; nothing was done")
