"""``stepladder export``: stored answers with their verdicts, as lines that ``stepladder judge --expect`` reads."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_filter, parse_where
from stepladder.cli.options import App, Where
from stepladder.cli.output import console, escape
from stepladder.schemas.jsontext import json_text
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from stepladder.cli.session import Session
    from stepladder.models.listing import JobFilter
    from stepladder.schemas.tool import Kit


def export(
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=1, help="of no more jobs than this, the newest first")] = None,
    app: App = None,
) -> None:
    """Write stored answers to standard output, one a line, each with what it is judged by and its verdict.

    Judge them anywhere: stepladder judge FILE.jsonl --expect
    """
    from stepladder.cli.session import in_session
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    kit = kit_of(settings)
    wanted = parse_filter(parse_where(where or []))
    written, left_out = in_session(settings, lambda session: _export(session, kit, wanted, limit))
    out = console(error=True)
    out.print(f"{written:,} answers written; judge them: stepladder judge FILE.jsonl --expect", style="dim")
    for reason, times in left_out.most_common():
        out.print(f"{times:,} left out: {escape(_REASONS.get(reason, reason))}")


async def _export(session: Session, kit: Kit, wanted: JobFilter, limit: int | None) -> tuple[int, Counter[str]]:
    from stepladder.judge.exported import exported
    from stepladder.models.answers import memories, pages
    from stepladder.runner.machines import Machines
    from stepladder.schemas.finding import BadDocumentError
    from stepladder.services.revalidation import up_to

    machines = Machines(session.store, kit)
    written, left_out = 0, Counter[str]()
    async for page in up_to(pages(session.store.database, wanted), limit):
        for memory in await memories(session.store.database, page, answers=True):
            try:
                machine = await machines.get(memory.workflow, memory.version, memory.variant)
            except BadDocumentError:
                left_out["missing_tools"] += len(memory.answers)
                continue
            for line in exported(machine, memory.job, memory.answers):
                if isinstance(line, str):
                    left_out[line] += 1
                    continue
                sys.stdout.write(json_text(line, ascii_only=True) + "\n")
                written += 1
    sys.stdout.flush()
    return written, left_out


_REASONS = {
    "broken_off": "no complete answer arrived",
    "gone": "retention removed their bytes",
    "no_state": "the document does not ask the model in their state",
    "unique": "their list's items must be unique, which a line cannot express",
    "missing_tools": "this process lacks the tools or rules of their workflow: name them with --app",
}
