"""Tries the tests of the classification and of the retry policy: each small change to them must be noticed.

A change that no test notices is a survivor. It must be in ``scripts/mutants.json``, with the reason why it cannot
change a verdict; any other survivor is a hole in the tests, and ends this with 1.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import io
import json
import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from support.mutations import Mutant, Mutations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "stepladder"
KNOWN = Path(__file__).with_suffix(".json")

_LADDER = ("validation/test_verdicts.py", "validation/test_ladder.py")
_PARSING = ("validation/test_diagnosis.py", "validation/test_parse.py", "validation/test_ladder.py")
_RETRIES = ("workflows/test_retry.py", "workflows/test_notes.py", "workflows/test_request.py")
TARGETS = {
    "validation/termination.py": _LADDER,
    "validation/completion.py": _LADDER,
    "validation/sse.py": _LADDER,
    "validation/engine_errors.py": _LADDER,
    "validation/ladder.py": _LADDER,
    "validation/parse.py": _PARSING,
    "validation/diagnosis.py": _PARSING,
    "workflows/retry.py": _RETRIES,
    "workflows/notes.py": _RETRIES,
}
"""Each file, and the tests that are to notice its changes, the quickest first."""

PYTEST = (
    *("-x", "-q", "--noconftest", "-p", "no:cacheprovider", "--rootdir", str(ROOT)),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported here already, and need not be again
)

TIMES_SLOWER = 10
"""A mutant whose tests take this many times as long as the original's has made something endless."""


@dataclass(frozen=True, slots=True)
class Result:
    mutant: Mutant
    noticed: bool


class Stand(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module's name to a program of ours."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)  # noqa: S102 -- the project's own source, with one change


def enums() -> dict[str, list[str]]:
    """The closed words that decide: a change puts the next one in their place. Read from the source, not imported."""
    found: dict[str, list[str]] = {}
    for file in ("schemas/outcomes.py", "schemas/job.py"):
        for node in ast.parse((SOURCE / file).read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "StrEnum" for base in node.bases):
                found[node.name] = [
                    part.targets[0].id
                    for part in node.body
                    if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
                ]
    return found


def run_tests(file: str, tree: ast.Module, told: int | None = None) -> int:
    """The tests of a file in a separate process, with ``tree`` in the file's place. Returns the process's id.

    It writes the names of all imported modules into the pipe ``told``.
    """
    program = compile(tree, str(SOURCE / file), "exec")
    child = os.fork()
    if child:
        return child
    code = 2
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            name = "stepladder." + file.removesuffix(".py").replace("/", ".")
            sys.meta_path.insert(0, Stand(name, SOURCE / file, program))
            tests = [str(path) for test in TARGETS[file] if (path := ROOT / "tests/unit" / test).exists()]
            code = int(pytest.main([*PYTEST, *tests]))
            if told is not None:
                os.write(told, "\n".join(sys.modules).encode())
    except BaseException:  # noqa: BLE001 -- any failure of a changed program counts as detected
        code = 3
    os._exit(code)


def ended(child: int, *, block: bool = False) -> int | None:
    """The exit code of a child, or None while it runs."""
    pid, status = os.waitpid(child, 0 if block else os.WNOHANG)
    return None if pid == 0 else os.waitstatus_to_exitcode(status)


def warm_up(file: str, tree: ast.Module) -> None:
    """Runs the tests on what is there, and imports what they need of others, once for all the children to come."""
    reading, writing = os.pipe()
    child = run_tests(file, tree, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:  # noqa: PTH123 -- a descriptor
        names = pipe.read().split("\n")
    if ended(child, block=True) != 0:
        sys.exit(f"The tests of {file} fail as it is: {' '.join(TARGETS[file])}. Fix them first.")
    for name in names:
        if name.partition(".")[0] not in ("", "stepladder", "support", "tests", "conftest", "__main__"):
            with contextlib.suppress(Exception):  # the tests' own modules cannot be imported by name
                importlib.import_module(name)


def results(file: str, side_by_side: int, wanted: str) -> Iterator[Result]:
    """Every mutant of a file with what became of it."""
    mutations = Mutations(file, (SOURCE / file).read_text(), enums())
    warm_up(file, mutations.tree)
    began = time.monotonic()
    if ended(run_tests(file, mutations.tree), block=True) != 0:
        sys.exit(f"The tests of {file} fail when run together, so they show nothing.")
    patience_s = TIMES_SLOWER * max(1.0, time.monotonic() - began)
    running: dict[int, tuple[Mutant, float]] = {}
    for mutant in mutations:
        if wanted not in str(mutant):
            continue
        while len(running) >= side_by_side:
            yield from _finished(running, patience_s)
        running[run_tests(file, mutations.tree)] = (mutant, time.monotonic())
    while running:
        yield from _finished(running, patience_s)


def _finished(running: dict[int, tuple[Mutant, float]], patience_s: float) -> Iterator[Result]:
    for child, (mutant, began) in list(running.items()):
        code = ended(child)
        if code is None and time.monotonic() - began > patience_s:
            os.kill(child, 9)
            code = ended(child, block=True)
        if code is not None:
            del running[child]
            yield Result(mutant, noticed=code != 0)
    time.sleep(0.02)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of {', '.join(TARGETS)}; all without one")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the mutants whose line holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many to try side by side")
    asked = parser.parse_args(words)
    if unknown := [file for file in asked.files if file not in TARGETS]:
        parser.error(f"{unknown[0]} is not one of {', '.join(TARGETS)}")
    # The same few examples each time: a mutant found by chance is not found by a test.
    hypothesis.settings.register_profile("mutants", derandomize=True, max_examples=25, database=None, deadline=None)
    hypothesis.settings.load_profile("mutants")
    listed = json.loads(KNOWN.read_text())
    known = {(file, one["near"], one["was"], one["now"]): one["why"] for file in listed for one in listed[file]}
    holes, seen = 0, set()
    for file in asked.files or TARGETS:
        tried = survived = 0
        for result in results(file, asked.jobs, asked.only):
            tried += 1
            seen.add(result.mutant.key)
            if not result.noticed:
                survived += 1
                if result.mutant.key not in known:
                    holes += 1
                    print(f"not noticed: {result.mutant}", flush=True)
            elif result.mutant.key in known:
                print(f"noticed after all, take it off the list: {result.mutant}", flush=True)
        print(f"{file}: {tried} mutants, {tried - survived} noticed, {survived} not", flush=True)
    if not asked.only:
        for key in [key for key in known if key[0] in (asked.files or TARGETS) and key not in seen]:
            print(f"on the list and nowhere else: {' | '.join(key)}")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
