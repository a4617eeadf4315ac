"""How commands print: results to standard output, everything else to standard error, and exit codes."""

from __future__ import annotations

import json
import re
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from rich import markup
from rich.console import Console

from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from stepladder.schemas.errors import StepladderError


class Exit(IntEnum):
    """Exit codes."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


SHORT = 100  # characters of user text within a line of ours
WIDTH = 100  # columns where standard output is not a terminal
COLOURS = {"succeeded": "green", "valid": "green", "failed": "red", "cancelled": "red"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def console(*, error: bool = False) -> Console:
    """A console without automatic highlighting that wraps only tables."""
    out = Console(stderr=error, highlight=False, emoji=False, soft_wrap=True)
    if not out.is_terminal:
        out.width = WIDTH
    return out


def hint(text: str) -> None:
    """Print what to do next, to standard error."""
    console(error=True).print(escape(text), style="dim")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one JSON document to standard output; without ``indent``, on one line."""
    text = json_text(value, indent=indent)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # a terminal with another encoding
        text = json_text(value, indent=indent, ascii_only=True)
    print(text, flush=True)


def printable(text: str) -> str:
    """Text of a model, tool or engine with control characters escaped, so that it cannot control the terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def escape(text: str) -> str:
    """``printable`` text without rich markup."""
    return markup.escape(printable(text))


def shorten(text: str, limit: int = SHORT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_json(value: object, limit: int = SHORT) -> str:
    """A value as JSON within a line, escaped."""
    return escape(shorten(json.dumps(value, ensure_ascii=False, default=str), limit))


def coloured(word: object) -> str:
    """A status, outcome or failure as markup."""
    text = "-" if word is None else str(word)
    return f"[{COLOURS.get(text, 'yellow')}]{escape(text)}[/]"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def make_table(*columns: str, wide: tuple[str, ...] = (), right: tuple[str, ...] = ()) -> Table:
    """A table without borders. The ``wide`` columns share the remaining width, ``right`` ones are right-aligned."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in columns:
        table.add_column(
            name,
            justify="right" if name in right else "left",
            ratio=1 if name in wide else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def progress_bar(verb: str, suffix: str = "{task.fields[suffix]}", *, shown: bool = True) -> Progress:
    """A bar of how many are done, on standard error, which disappears at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(verb), BarColumn(), MofNCompleteColumn(), TextColumn(suffix))
    return Progress(*columns, console=console(error=True), transient=True, disable=not shown)


def print_error(error: StepladderError) -> Exit:
    """Print what happened and what to do next; returns the exit code."""
    out = console(error=True)
    out.print(f"[bold red]error:[/] {escape(str(error))}")
    if error.remedy:
        out.print(f"       {escape(error.remedy)}")
    match error:
        case BadInputError():
            return Exit.BAD_INPUT
        case UnreachableError():
            return Exit.UNREACHABLE
        case _:
            return Exit.FAILED
