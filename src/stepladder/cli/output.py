"""How the command line speaks: answers to standard output, everything else to standard error, codes by kind of end."""

from __future__ import annotations

import re
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from rich import markup
from rich.console import Console

from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from stepladder.schemas.errors import StepladderError


class Exit(IntEnum):
    """Exit codes."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
SHORT = 100  # characters of a text of others, within a line of ours
WIDTH = 100  # of tables that go to a file or another program


def console(*, error: bool = False) -> Console:
    """A console that neither guesses at highlights nor wraps what is no table."""
    out = Console(stderr=error, highlight=False, emoji=False, soft_wrap=True)
    if not out.is_terminal:
        out.width = WIDTH
    return out


def printable(text: str) -> str:
    """Text of a model, a tool or an engine, which must not steer the terminal: control characters are spelled out."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shorten(text: str, most: int = SHORT) -> str:
    """The beginning of a text, marked where it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def escape(text: str) -> str:
    """The same for a text that stands in markup."""
    return markup.escape(printable(text))


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON document on standard output; without ``indent`` it is one line."""
    text = json_text(value, indent=indent)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # a terminal of another alphabet
        text = json_text(value, indent=indent, ascii_only=True)
    print(text, flush=True)


def complain(error: StepladderError) -> Exit:
    """Says what happened and what to do next; gives the exit code."""
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
