"""``stepladder lint``: everything that is wrong with a document, at once."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepladder.cli import budgets
from stepladder.cli.options import App, AsJson
from stepladder.cli.output import WIDTH, Exit, console, escape, hint, plural, print_json, printable
from stepladder.lint.backends.engines import Backend, Engine, UnknownVersion, engine_of
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.finding import Severity
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from stepladder.lint.compile import Compiled
    from stepladder.schemas.finding import Finding

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
INDENT = "    "


def lint(
    documents: Annotated[list[str], typer.Argument(metavar="DOC...", help="YAML or JSON file, or MODULE:NAME")],
    backend: Annotated[Backend | None, typer.Option(help="also what this grammar backend refuses or ignores")] = None,
    engine_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="of vLLM, or llama.cpp's build; default: the newest known")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit code 1 for warnings too")] = False,
    hints: Annotated[bool, typer.Option("--all", help="print hints too")] = False,
    engine_url: Annotated[
        str | None, typer.Option(metavar="URL", help="engine whose tokenizer counts the answers")
    ] = None,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Check workflow documents. Exit code 1 if one has errors."""
    from stepladder.lint.schemas import Audit
    from stepladder.wiring.app import compile_document, load_kit

    settings = load_settings(app=app, engine_url=engine_url)
    engine = _engine(backend, engine_version)
    audit = Audit(engine, hints)
    checked = {one: compile_document(one, load_kit(settings.app, one), audit) for one in dict.fromkeys(documents)}
    tokens = budgets.estimate_budgets(settings, checked)
    checked = budgets.add_findings(checked, tokens, hints=hints)
    if as_json:
        print_json(_as_json(checked, engine) | {"budgets": tokens.as_json()})
    else:
        for document, compiled in checked.items():
            _print(console(), document, compiled)
        budgets.print_budgets(console(), tokens)
    found = {finding.severity for compiled in checked.values() for finding in compiled.findings}
    failed = Severity.ERROR in found or (strict and Severity.WARNING in found)
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def _engine(backend: Backend | None, version: str | None) -> Engine | None:
    if backend is None and version is not None:
        words = ", ".join(Backend)
        raise BadInputError("--engine-version needs --backend", remedy=f"add --backend, one of {words}")
    engine = None if backend is None else engine_of(backend, version)
    if isinstance(engine, UnknownVersion):
        raise BadInputError(f"--engine-version: {engine.reason}", remedy=engine.known)
    if engine is not None and not engine.measured:
        hint(f"note: {engine.name} was not measured; it is assumed to behave as the newest known version")
    return engine


def _as_json(checked: dict[str, Compiled], engine: Engine | None) -> dict[str, Any]:
    findings = [
        {"document": document} | asdict(finding)
        for document, compiled in checked.items()
        for finding in compiled.findings
    ]
    counts = Counter(finding["severity"] for finding in findings)
    documents = list(checked)
    return {
        "ok": not counts[Severity.ERROR],
        "document": documents[0] if len(documents) == 1 else None,
        "documents": documents,
        "engine": None if engine is None else engine.name,
        "counts": {severity.value: counts[severity] for severity in Severity},
        "findings": findings,
    }


def print_warning_count(document: str, findings: Sequence[Finding]) -> None:
    """One line, for commands that do something else with the document."""
    if findings:
        hint(f"{plural(len(findings), 'warning')} in {document}: stepladder lint {document}")


def _print(out: Console, document: str, compiled: Compiled) -> None:
    if compiled.findings:
        out.print(f"[bold]{escape(document)}[/]")
    for finding in compiled.findings:
        for number, line in enumerate(_lines(finding)):
            word, _, rest = line.partition(" ")
            out.print(f"  [{COLOURS[finding.severity]}]{word}[/] {escape(rest)}" if not number else escape(line))
    machine = compiled.machine
    name = document if machine is None else f"{machine.name} {machine.version}: {len(machine.states)} states"
    out.print(f"{escape(name)}{':' if machine is None else ','} {_counted(compiled)}")


def _lines(finding: Finding) -> Iterator[str]:
    """Severity and place, then why, and what to write instead."""
    place = "" if finding.line is None else f"line {finding.line}, column {finding.column}: "
    head = f"{finding.severity} {finding.code}, {place}".removesuffix(" ")
    where = finding.pointer or "/"
    if len(f"  {head} {where}") <= WIDTH:
        yield f"{head} {where}"
    else:
        yield head
        yield f"{INDENT}{where}"
    width = WIDTH - len(INDENT)
    for text in filter(None, (finding.message, finding.remedy and f"instead: {finding.remedy}")):
        yield from (INDENT + line for line in textwrap.wrap(printable(text), width, break_on_hyphens=False))


def _counted(compiled: Compiled) -> str:
    counts = Counter(finding.severity for finding in compiled.findings)
    hints = f", {plural(counts[Severity.HINT], 'hint')}" if counts[Severity.HINT] else ""
    errors = plural(counts[Severity.ERROR], "error") if counts[Severity.ERROR] else "no errors"
    return f"{plural(counts[Severity.WARNING], 'warning')}{hints}, {errors}"
