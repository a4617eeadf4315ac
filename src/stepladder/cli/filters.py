"""The filters of jobs as options, in the words of the API's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from stepladder.cli.arguments import parse_pairs
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from enum import StrEnum

    from stepladder.models.listing import JobFilter
    from stepladder.schemas.jsontypes import Json


def _completing(words: Iterable[StrEnum]) -> Callable[[], list[str]]:
    return lambda: [str(word) for word in words]


Statuses: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        metavar="WORD",
        autocompletion=_completing(JobStatus),
        help=f"with this status: {', '.join(JobStatus)}",
    ),
]
Workflows: TypeAlias = Annotated[list[str] | None, typer.Option("--workflow", metavar="NAME", help="of this workflow")]
Outcomes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--outcome",
        metavar="WORD",
        autocompletion=_completing(Outcome),
        help=f"with an attempt of this outcome: {', '.join(Outcome)}",
    ),
]
Causes: TypeAlias = Annotated[list[str] | None, typer.Option("--cause", metavar="WORD", help="and of this cause")]
Rules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="ID", help="with an answer that broke this rule, or this keyword of its schema"),
]
Search: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TEXT", help="with this text in an answer, or in the reason of an error")
]
Failures: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--failure",
        metavar="WORD",
        autocompletion=_completing(Failure),
        help=f"that failed for this reason: {', '.join(Failure)}",
    ),
]
States: TypeAlias = Annotated[
    list[str] | None, typer.Option("--state", metavar="NAME", help="that is, or ended, in this state")
]
Principals: TypeAlias = Annotated[
    list[str] | None, typer.Option("--principal", metavar="NAME", help="submitted by this principal")
]
Parent: TypeAlias = Annotated[str | None, typer.Option(metavar="JOB", help="called by this job")]
ReplaysOf: TypeAlias = Annotated[
    list[str] | None, typer.Option("--replay-of", metavar="JOB", help="made from this job")
]
After: TypeAlias = Annotated[
    str | None, typer.Option("--created-after", metavar="TIME", help="created then or later (RFC 3339)")
]
Before: TypeAlias = Annotated[str | None, typer.Option("--created-before", metavar="TIME", help="created before then")]
Metadata: TypeAlias = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="with this among its words")
]


def read_filter(*, metadata: list[str] | None = None, **typed: list[str] | str | None) -> JobFilter:
    """The options by their words; those that were not typed are None. Raises ``BadInputError`` naming the wrong one."""
    from stepladder.models.where import METADATA, WhereError, filter_of

    where: dict[str, Json] = {name: value for name, value in typed.items() if value}
    if typed.get("search") == "":
        raise BadInputError("--search is empty", remedy="write the text to look for, or leave it out")
    pairs = parse_pairs(metadata or [], "--metadata")
    try:
        return filter_of(where | {METADATA + key: text for key, text in pairs.items()})
    except WhereError as error:
        flag = "--metadata" if error.field.startswith(METADATA) else f"--{error.field.replace('_', '-')}"
        raise BadInputError(f"{flag}: {error}", remedy="mend it, or leave it out") from None
