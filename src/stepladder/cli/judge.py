"""``stepladder judge``: stored answers through the ladder, offline, by the very code that judges a live turn."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from stepladder.cli.output import Exit, console, escape, shorten
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepladder.judge.expectations import Difference
    from stepladder.judge.specimens import Case, Specimens
    from stepladder.schemas.finding import Finding

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. The largest body that the engine's client takes in has 32 MiB, and as a string in JSON it grows."""
MOST_ROWS = 1000
"""Differences that are listed; further ones are only counted."""


def judge(
    file: Annotated[str, typer.Argument(metavar="FILE.jsonl", help="one object per line; - reads standard input")],
    expect: Annotated[bool, typer.Option("--expect", help="compare each verdict with the line's `expect`")] = False,
    app: Annotated[str | None, typer.Option(help="Python module that registers rules")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="write the output on standard error as JSON, too")] = False,
) -> None:
    """Judge stored answers: one verdict per line, as JSON, without engine and database.

    Exit code 0 for any verdicts, 1 if one is not as its line expects, 2 if a line is invalid; all other lines are still
    judged.
    """
    from stepladder.judge.specimens import Specimens
    from stepladder.wiring.app import load_kit

    settings = load_settings(app=app)
    specimens = Specimens(load_kit(settings.app, rule_timeout_s=settings.rule_timeout_s))
    report = _Report(as_json)
    out = sys.stdout.buffer
    with _opened(file) as lines, contextlib.redirect_stdout(sys.stderr):  # a user's rule may print
        for number, line in numbered_lines(lines):
            verdict = _judged(number, line, specimens, report, expect=expect)
            if verdict is not None:
                out.write(json.dumps(verdict, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
                out.flush()
    raise typer.Exit(report.close(file) if expect else report.code)


@dataclass(slots=True)
class _Report:
    """The report on standard error, and the exit code."""

    as_json: bool
    faults: int = 0
    compared: int = 0
    silent: int = 0
    differing: int = 0
    rows: list[tuple[int, str | int, Difference]] = field(default_factory=list)
    beyond: int = 0

    @property
    def code(self) -> Exit:
        if self.faults:
            return Exit.BAD_INPUT
        return Exit.FAILED if self.differing else Exit.DONE

    def fault(self, number: int, pointer: str, message: str, remedy: str) -> None:
        self.faults += 1
        if self.as_json:
            self._say_json({"line": number, "pointer": pointer, "error": message, "remedy": remedy})
            return
        place = f"line {number}{pointer and f', {pointer}'}"
        console(error=True).print(f"[bold red]error:[/] {escape(f'{place}: {message}')}")
        if remedy:
            console(error=True).print(f"       {escape(remedy)}")

    def compare(self, number: int, name: str | int, found: Sequence[Difference]) -> None:
        self.compared += 1
        self.differing += bool(found)
        for difference in found:
            if self.as_json:
                self._say_json({"line": number, "id": name, **difference._asdict()})
            elif len(self.rows) < MOST_ROWS:
                self.rows.append((number, name, difference))
            else:
                self.beyond += 1

    def close(self, file: str) -> Exit:
        """Reports the comparison. Raises ``BadInputError`` if nothing was compared, which is not a success."""
        if not self.compared and not self.faults:
            raise BadInputError(
                f"no line of {file} has `expect`", remedy='add "expect": {"outcome": "valid"} to a line'
            )
        if self.as_json:
            counts = {"compared": self.compared, "differing": self.differing, "without_expect": self.silent}
            self._say_json(counts | {"faults": self.faults})
            return self.code
        err = console(error=True)
        if self.rows:
            err.print(self._table(), soft_wrap=False)
        if self.beyond:
            err.print(f"and {self.beyond:,} more differences")
        without = f"; lines without `expect`: {self.silent:,}" if self.silent else ""
        err.print(f"{self._summary()}{without}")
        return self.code

    def _summary(self) -> str:
        if self.differing:
            return f"{self.differing:,} of {self.compared:,} verdicts differ"
        return "The only verdict matches" if self.compared == 1 else f"All {self.compared:,} verdicts match"

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for heading in ("line", "id", "field", "expected", "got"):
            table.add_column(heading, justify="right" if heading == "line" else "left", overflow="fold")
        for number, name, difference in self.rows:
            expected, got = (json.dumps(value, ensure_ascii=False) for value in difference[1:])
            cells = (str(name), difference.field, expected, got)
            table.add_row(str(number), *(escape(shorten(cell)) for cell in cells))
        return table

    def _say_json(self, value: dict[str, Any]) -> None:
        print(json.dumps(value, ensure_ascii=False), file=sys.stderr)  # which spells out what it cannot show


def _judged(
    number: int, line: bytes | None, specimens: Specimens, report: _Report, *, expect: bool
) -> dict[str, Any] | None:
    """The verdict on one line, or None if it is invalid, which the report explains."""
    from stepladder.judge.expectations import told
    from stepladder.judge.specimens import Case

    if line is None:
        message = f"the line has more than {LONGEST_LINE:,} bytes"
        report.fault(number, "", message, "leave out of the body what the verdict does not need")
        return None
    match specimens.read(line):
        case Case() as case:
            verdict = told(case.id, case.judge())
            if expect:
                _compare(number, case, verdict, report)
            return verdict
        case findings:
            _fault(number, findings, report)
            return None


def _compare(number: int, case: Case, verdict: dict[str, Any], report: _Report) -> None:
    from stepladder.judge.expectations import differences, read_expect
    from stepladder.schemas.specimen import Expect

    if case.expect is None:
        report.silent += 1
        return
    match read_expect(case.expect):
        case Expect() as expected:
            report.compare(number, case.id, differences(expected, verdict))
        case findings:
            _fault(number, findings, report)


def _fault(number: int, findings: Sequence[Finding], report: _Report) -> None:
    for finding in findings:
        report.fault(number, finding.pointer, finding.message, finding.remedy)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            lines = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            message = f"{file} cannot be read: {error.strerror or error}"
            raise BadInputError(message, remedy="name an existing file, or - for standard input") from None
        yield lines


def numbered_lines(lines: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Each line that is not blank, with its number; None in place of one that is too long to be held."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := lines.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield number, None
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line
