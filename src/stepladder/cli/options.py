"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from uuid import UUID

import typer

JobId: TypeAlias = Annotated[UUID, typer.Argument(metavar="JOB", help="the job's id")]
App: TypeAlias = Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")]
Model: TypeAlias = Annotated[str | None, typer.Option(help="model to use; default: the first that the engine lists")]
LogLevel: TypeAlias = Annotated[str | None, typer.Option(help="debug, info, warning or error")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="print JSON")]
Input: TypeAlias = Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="the job's input")]
Key: TypeAlias = Annotated[
    str | None, typer.Option("--idempotency-key", help="repeating a command with the same key has no further effect")
]
Where: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="only matching jobs; may be repeated")
]
