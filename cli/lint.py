"""``stepladder lint``: everything that is wrong with a document, at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from stepladder.cli.output import Exit, console, escape, say_json
from stepladder.schemas.finding import BadDocumentError
from stepladder.wiring.settings import load_settings


def lint(
    document: Annotated[str, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")],
    app: Annotated[str | None, typer.Option(help="Python module that registers tools and rules")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="findings as JSON")] = False,
) -> None:
    """Check a workflow document. Exit code 1 if it has errors."""
    from stepladder.wiring.app import load_kit, load_machine

    kit = load_kit(load_settings(app=app).app, document)
    try:
        machine, findings = load_machine(document, kit)
    except BadDocumentError as error:
        machine, findings = None, error.findings
    if as_json:
        say_json({"document": document, "ok": machine is not None, "findings": [asdict(one) for one in findings]})
    else:
        out = console()
        for finding in findings:
            colour = "red" if finding.severity.value == "error" else "yellow"
            out.print(f"[{colour}]{finding.severity.value}[/] {escape(str(finding))} \\[{finding.code}]")
        if machine is not None:
            count = len(machine.states)
            out.print(f"{machine.name} {machine.version}: {count} states, {len(findings)} warnings, no errors")
    raise typer.Exit(Exit.FAILED if machine is None else Exit.DONE)
