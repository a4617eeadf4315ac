"""``stepladder export``: stored answers with their verdicts, as lines that ``stepladder judge --expect`` reads."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_filter, parse_where
from stepladder.cli.options import App, Where
from stepladder.cli.output import console, escape, hint, plural
from stepladder.cli.revalidate import REASONS
from stepladder.schemas.jsontext import json_text
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from stepladder.cli.session import Session
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.tool import Kit


def export(
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=1, help="at most this many jobs, the newest first")] = None,
    app: App = None,
) -> None:
    """Write stored answers to standard output, one per line, with the schema, the rules and the verdict of each.

    Judge them anywhere: stepladder judge FILE.jsonl --expect
    """
    from stepladder.cli.session import in_session
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    kit = kit_of(settings)
    wanted = parse_filter(parse_where(where or []))
    written, left_out = in_session(settings, lambda session: _export(session, kit, wanted, limit))
    hint(f"{plural(written, 'answer')} written; judge them: stepladder judge FILE.jsonl --expect")
    for reason, times in left_out.most_common():
        console(error=True).print(f"{times:,} left out: {escape(REASONS.get(reason, reason))}")


async def _export(session: Session, kit: Kit, wanted: JobFilter, limit: int | None) -> tuple[int, Counter[str]]:
    from stepladder.judge.exported import exported
    from stepladder.queries.answers import memories, pages
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
