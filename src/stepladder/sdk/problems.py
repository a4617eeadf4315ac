"""The API's problems (RFC 9457) as exceptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from stepladder.schemas.errors import BadInputError, StepladderError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Mistake:
    """One place where a request is wrong: a JSON pointer into its body, or else the name of a ``parameter``."""

    pointer: str
    reason: str
    parameter: str | None = None


class ProblemError(StepladderError):
    """The API answered with a problem. ``type`` is the word that programs may rely on, such as ``not-found``."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        *,
        type: str = "",  # noqa: A002 -- the problem's own word
        errors: tuple[Mistake, ...] = (),
        remedy: str = "",
    ) -> None:
        lines = "".join(f"\n  {error.parameter or error.pointer or '/'}: {error.reason}" for error in errors)
        super().__init__((detail or title) + lines, remedy=remedy)
        self.status = status
        self.type = type
        self.title = title
        self.detail = detail
        self.errors = errors


class RejectedError(ProblemError, BadInputError):
    """The request has a mistake: any status from 400 on without its own class."""


class NotFoundError(RejectedError):
    """There is no such job, workflow or attempt: status 404."""


class ConflictError(RejectedError):
    """A conflict with the current state, such as a signal to a job that has ended: status 409."""


class DeniedError(RejectedError):
    """No key, a wrong one, or one that may not do this: status 401 or 403."""


class UnavailableError(ProblemError, UnreachableError):
    """The server, or one that it needs, failed on every retry: status 429 or from 500 on."""


class WaitTimeoutError(StepladderError, TimeoutError):
    """The job has not ended in time; it is still running."""


_KINDS: dict[int, type[ProblemError]] = {401: DeniedError, 403: DeniedError, 404: NotFoundError, 409: ConflictError}
_PREFIX = "urn:stepladder:problem:"


def problem_of(status: int, body: bytes) -> ProblemError:
    """The exception for an error answer, from the API or a proxy."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    words: Mapping[str, Any] = found if isinstance(found, dict) else {}
    kind = UnavailableError if status == 429 or status >= 500 else _KINDS.get(status, RejectedError)
    return kind(
        status,
        str(words.get("title") or _phrase(status)),
        str(words.get("detail") or "" if words else f"{_phrase(status)}: {body[:200].decode(errors='replace')}"),
        type=str(words.get("type", "")).removeprefix(_PREFIX),
        errors=tuple(_mistake(error) for error in words.get("errors") or () if isinstance(error, dict)),
        remedy=str(words.get("remedy", "")),
    )


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _mistake(error: Mapping[str, Any]) -> Mistake:
    parameter = error.get("parameter")
    reason = str(error.get("reason", ""))
    return Mistake(str(error.get("pointer", "")), reason, None if parameter is None else str(parameter))
