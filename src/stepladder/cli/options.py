"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from uuid import UUID

import typer

from stepladder.schemas.errors import BadInputError


def parse_job_id(text: str) -> UUID:
    """Raises ``BadInputError`` for what is not an id."""
    try:
        return UUID(text)
    except ValueError:
        remedy = "ids look like 0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
        raise BadInputError(f"{text!r} is not a job id", remedy=remedy) from None


JobId: TypeAlias = Annotated[UUID, typer.Argument(metavar="JOB", parser=parse_job_id, help="the job's id")]
OtherJob: TypeAlias = Annotated[
    UUID, typer.Argument(metavar="OTHER", parser=parse_job_id, help="the id of the job to compare with")
]
MaybeJob: TypeAlias = Annotated[UUID | None, typer.Argument(metavar="[JOB]", parser=parse_job_id, help="the job's id")]
OldJob: TypeAlias = Annotated[
    UUID | None,
    typer.Option("--job", metavar="JOB", parser=parse_job_id, help="continue this job instead of a new one"),
]
Cursor: TypeAlias = Annotated[
    UUID | None,
    typer.Option(metavar="JOB", parser=parse_job_id, help="continue after this job, the last of an earlier page"),
]
App: TypeAlias = Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")]
Model: TypeAlias = Annotated[str | None, typer.Option(help="model to use; default: the first that the engine lists")]
LogLevel: TypeAlias = Annotated[str | None, typer.Option(help="debug, info, warning or error")]
Host: TypeAlias = Annotated[str | None, typer.Option(help="address of the API; needs keys unless it is loopback")]
Port: TypeAlias = Annotated[
    int | None, typer.Option(min=0, max=65535, help="port of the API; default 8700, 0 takes a free one")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="print JSON")]
Input: TypeAlias = Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="the job's input")]
Key: TypeAlias = Annotated[
    str | None, typer.Option("--idempotency-key", help="repeating a command with the same key has no further effect")
]
Where: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="only matching jobs; may be repeated")
]
