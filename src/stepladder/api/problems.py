"""Problems (RFC 9457): what happened, where, and what to do next, for every error that clients see."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException

from stepladder.api.answers import JsonAnswer
from stepladder.schemas.errors import BadInputError, GoneError, StepladderError, UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.shape import ResponseModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI, Request

    from stepladder.schemas.answer import Violation
    from stepladder.schemas.finding import Finding

MEDIA_TYPE = "application/problem+json"
BASE = "urn:stepladder:problem:"
MOST_ERRORS = 100
"""Listed in one problem; a batch of 1,000 jobs may have many more."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One place where a request is wrong: a JSON pointer into its body, or else the name of a parameter."""

    reason: str
    pointer: str = ""
    parameter: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class ProblemPlace(ResponseModel):
    """One mistake: a JSON pointer into the body, or, for a parameter, its name."""

    model_config = ConfigDict(extra="allow")

    pointer: str
    reason: str
    parameter: str | None = None


class Problem(ResponseModel):
    """What went wrong (RFC 9457), and, in `remedy`, what to do next."""

    type: str = Field(examples=["urn:stepladder:problem:invalid-request"])
    title: str = Field(examples=["Invalid request"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["the input does not fit workflow usage-bill 1"])
    errors: tuple[ProblemPlace, ...] = Field(
        examples=[[{"pointer": "/input/team", "reason": "must be a string, not 5"}]]
    )
    remedy: str = Field(examples=["fix the input; nothing was stored"])
    error_count: int | None = Field(None, description="where there are more errors than `errors` lists")


class ProblemError(Exception):
    """Raised by routes. ``kind`` is the last word of the problem's ``type``, which programs may rely on."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        remedy: str = "",
        mistakes: Sequence[Mistake] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.remedy = remedy
        self.mistakes = tuple(mistakes)
        self.headers = dict(headers or {})

    def answer(self) -> JsonAnswer:
        more = {"error_count": len(self.mistakes)} if len(self.mistakes) > MOST_ERRORS else {}
        problem = Problem(
            type=BASE + self.kind,
            title=self.kind.replace("-", " ").capitalize(),
            status=self.status,
            detail=self.detail,
            errors=tuple(map(_place, self.mistakes[:MOST_ERRORS])),
            remedy=self.remedy,
            **more,
        )
        return JsonAnswer(problem, self.status, self.headers, media_type=MEDIA_TYPE)


def _place(mistake: Mistake) -> ProblemPlace:
    named = {} if mistake.parameter is None else {"parameter": mistake.parameter}
    return ProblemPlace(pointer=mistake.pointer, reason=mistake.reason, **named, **mistake.more)


def not_found(what: str, remedy: str = "") -> ProblemError:
    return ProblemError(404, "not-found", f"there is no {what}", remedy=remedy)


def invalid(detail: str, mistakes: Sequence[Mistake], remedy: str = "") -> ProblemError:
    return ProblemError(422, "invalid-request", detail, mistakes=mistakes, remedy=remedy)


def mistakes_of(violations: Sequence[Violation], under: str = "") -> list[Mistake]:
    """Schema violations, by pointer into the body."""
    return [Mistake(violation.reason, under + violation.pointer) for violation in violations]


def key_taken() -> ProblemError:
    mistakes = [Mistake("another body was sent under this key", parameter="Idempotency-Key")]
    detail = "the idempotency key was used for another request"
    remedy = "send the same body again, or use a new key; nothing was stored"
    return ProblemError(422, "idempotency-key-reused", detail, mistakes=mistakes, remedy=remedy)


def lacking(error: BadDocumentError) -> ProblemError:
    """This process lacks tools or rules that a published document names."""
    mistakes = [Mistake(finding.message, parameter=finding.pointer) for finding in error.findings]
    remedy = "start it with the STEPLADDER_APP that registers those tools and rules"
    detail = "this server lacks tools or rules that the workflow names"
    return ProblemError(503, "missing-tools", detail, mistakes=mistakes, remedy=remedy)


def finding_more(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("code", "remedy", "line", "column")}


def of_error(error: StepladderError) -> ProblemError:
    """An error that a service raised. The routes check documents from users themselves."""
    if isinstance(error, BadDocumentError):
        return lacking(error)
    if isinstance(error, UnreachableError):
        return ProblemError(503, "unavailable", str(error), remedy=error.remedy, headers={"Retry-After": "1"})
    if isinstance(error, GoneError):
        return ProblemError(410, "gone", str(error), remedy=error.remedy)
    if isinstance(error, BadInputError):
        return ProblemError(422, "invalid-request", str(error), remedy=error.remedy)
    return ProblemError(500, "internal-error", "internal error", remedy=error.remedy)


def install(app: FastAPI) -> None:
    """Turns every exception into a problem."""

    @app.exception_handler(ProblemError)
    async def answer(_: Request, error: ProblemError) -> JsonAnswer:
        return error.answer()

    @app.exception_handler(StepladderError)
    async def answer_error(_: Request, error: StepladderError) -> JsonAnswer:
        return of_error(error).answer()

    @app.exception_handler(HTTPException)
    async def answer_http(request: Request, error: HTTPException) -> JsonAnswer:
        return _of_http(request, error).answer()

    @app.exception_handler(RequestValidationError)
    async def answer_parameters(_: Request, error: RequestValidationError) -> JsonAnswer:
        return _of_parameters(error).answer()

    @app.exception_handler(Exception)
    async def answer_bug(request: Request, _: Exception) -> JsonAnswer:  # raised again for ``Middleware`` to log
        return of_bug(request.state.request_id).answer()


def of_bug(request_id: str) -> ProblemError:
    detail = "internal error"
    remedy = f"see the server's log for the request {request_id}"
    return ProblemError(500, "internal-error", detail, remedy=remedy)


def _of_http(request: Request, error: HTTPException) -> ProblemError:
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            detail, remedy = f"there is no route {request.url.path}", "the routes are listed in /openapi.json"
            return ProblemError(404, "not-found", detail, remedy=remedy)
        case 405:
            allowed = headers.get("Allow", "")
            detail = f"{request.url.path} does not take {request.method}"
            remedy = f"use {allowed}"
            return ProblemError(405, "method-not-allowed", detail, remedy=remedy, headers=headers)
        case status:
            title = HTTPStatus(status).phrase
            return ProblemError(status, title.lower().replace(" ", "-"), str(error.detail), headers=headers)


def _of_parameters(error: RequestValidationError) -> ProblemError:
    mistakes = []
    for found in error.errors():
        place, name = str(found["loc"][0]), str(found["loc"][1])
        if place == "path" and found["type"].startswith("uuid"):
            return not_found(f"{name.removesuffix('_id')} {str(found['input'])[:100]!r}", "ids are UUIDs")
        mistakes.append(Mistake(found["msg"][0].lower() + found["msg"][1:], parameter=name))
    listed = ", ".join(str(mistake.parameter) for mistake in mistakes)
    return invalid(f"the request has wrong parameters: {listed}", mistakes, "fix them; nothing was done")
