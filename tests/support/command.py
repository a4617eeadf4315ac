"""The command line called within the tests' own process: a process of its own takes a second to start."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest
import structlog

from stepladder.cli.main import main
from stepladder.sdk import kit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Came(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


def call(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Came:
    """Runs ``stepladder WORDS`` in ``folder`` with this environment and no other. Nothing of it stays behind."""
    code: object = 0
    loaded = set(sys.modules)
    out_bytes, err_bytes = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (out_bytes, err_bytes))
    with pytest.MonkeyPatch.context() as place, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        place.chdir(folder)
        for name in os.environ.keys() - environment.keys():
            place.delenv(name)
        for name, value in environment.items():
            place.setenv(name, value)
        place.setattr(sys, "argv", ["stepladder", *words])
        place.setattr(sys, "path", list(sys.path))
        for registered in ("_tools", "_rules"):  # what the command's module registers is its own
            place.setattr(kit, registered, {})
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            structlog.reset_defaults()
            for name in sys.modules.keys() - loaded:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                    del sys.modules[name]
    return Came(code if isinstance(code, int) else 1, *(read.getvalue().decode() for read in (out_bytes, err_bytes)))
