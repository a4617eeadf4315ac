"""The filters of jobs as options, named as in the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from stepladder.cli.arguments import parse_pairs
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from enum import StrEnum

    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import Json

Texts: TypeAlias = list[str] | None


def _one_of(flag: str, words: type[StrEnum], text: str) -> Any:
    listed = [str(word) for word in words]
    return typer.Option(flag, metavar="WORD", autocompletion=lambda: listed, help=f"{text}: {', '.join(listed)}")


def _option(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=text)


Statuses: TypeAlias = Annotated[Texts, _one_of("--status", JobStatus, "with this status")]
Workflows: TypeAlias = Annotated[Texts, _option("--workflow", "NAME", "of this workflow")]
Outcomes: TypeAlias = Annotated[Texts, _one_of("--outcome", Outcome, "with an attempt of this outcome")]
Causes: TypeAlias = Annotated[Texts, _option("--cause", "WORD", "with an attempt of this cause")]
Rules: TypeAlias = Annotated[Texts, _option("--rule", "ID", "with an answer that broke this rule or schema keyword")]
Search: TypeAlias = Annotated[
    str | None, _option("--search", "TEXT", "with this text in an answer or an error's reason")
]
Failures: TypeAlias = Annotated[Texts, _one_of("--failure", Failure, "that failed for this reason")]
States: TypeAlias = Annotated[Texts, _option("--state", "NAME", "that is, or ended, in this state")]
Principals: TypeAlias = Annotated[Texts, _option("--principal", "NAME", "submitted by this principal")]
Parent: TypeAlias = Annotated[str | None, _option("--parent", "JOB", "called by this job")]
ReplaysOf: TypeAlias = Annotated[Texts, _option("--replay-of", "JOB", "made from this job")]
After: TypeAlias = Annotated[str | None, _option("--created-after", "TIME", "created then or later (RFC 3339)")]
Before: TypeAlias = Annotated[str | None, _option("--created-before", "TIME", "created earlier (RFC 3339)")]
Metadata: TypeAlias = Annotated[Texts, _option("--metadata", "KEY=VALUE", "with this metadata")]


def read_filter(*, metadata: list[str] | None = None, **options: list[str] | str | None) -> JobFilter:
    """A filter from options by their API names; None is not given. Raises ``BadInputError`` naming the option."""
    from stepladder.queries.where import METADATA, WhereError, filter_of

    if options.get("search") == "":
        raise BadInputError("--search is empty", remedy="write the text to look for, or leave it out")
    where: dict[str, Json] = {name: value for name, value in options.items() if value}
    where |= {METADATA + key: text for key, text in parse_pairs(metadata or [], "--metadata").items()}
    try:
        return filter_of(where)
    except WhereError as error:
        flag = "--metadata" if error.field.startswith(METADATA) else f"--{error.field.replace('_', '-')}"
        raise BadInputError(f"{flag}: {error}", remedy="fix it, or leave it out") from None
