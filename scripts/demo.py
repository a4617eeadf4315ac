"""Six real jobs of three examples on a real small model; what every turn came to; and how to look further.

Run by ``scripts/demo``. Exit code 0 if at least five of the six succeed and a rule's rejection can be shown.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from stepladder.cli.output import complain, console
from stepladder.cli.progress import Progress
from stepladder.cli.view import answer, coloured
from stepladder.runner.drive import Driver
from stepladder.runner.submission import publish, submit
from stepladder.schemas.errors import StepladderError
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.wiring import servers
from stepladder.wiring.app import load_kit, load_machine
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.settings import load_settings
from stepladder.wiring.system import open_system

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from stepladder.models.reads import AttemptRecord, Overview, TurnRecord
    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.workflows.machine import Machine

EXAMPLES = Path("examples")
JOBS = (
    ("bug_report", "crash"),
    ("bug_report", "typo"),
    ("usage_bill", "search"),
    ("usage_bill", "maps"),
    ("invoice", "coffee"),
    ("invoice", "books"),
)
ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """One job as it ended."""

    label: str
    machine: Machine
    job: Overview
    turns: tuple[TurnRecord, ...]


def main() -> int:
    settings = load_settings()
    configure_logs(settings.log_level or "error")
    out = console()
    try:
        with ExitStack() as stack:
            status = stack.enter_context(console(error=True).status("starting"))
            shown = asyncio.run(_run(settings, *_servers(stack, settings, status), out, status))
    except StepladderError as error:
        return int(complain(error))
    out.print(_table(shown), soft_wrap=False)
    rejected = _print_rejection(out, shown)
    succeeded = sum(one.job.status is JobStatus.SUCCEEDED for one in shown)
    out.print(f"\n[bold]{succeeded} of {len(shown)} jobs succeeded.[/]")
    _print_further(out, shown)
    return 0 if succeeded >= ENOUGH and rejected else 1


def _servers(stack: ExitStack, settings: Settings, status: Status) -> tuple[str, str]:
    database_url = stack.enter_context(servers.database(settings, status.update))
    return database_url, stack.enter_context(servers.engine(settings, status.update))


async def _run(settings: Settings, database_url: str, engine_url: str, out: Console, status: Status) -> list[Shown]:
    kit = _kit()
    key = settings.engine_api_key
    progress = Progress(out, status)
    shown: list[Shown] = []
    async with open_system(
        database_url,
        engine_url,
        kit,
        api_key=None if key is None else key.get_secret_value(),
        model=settings.model,
        observe=progress.seen,
    ) as system:
        for example, name in JOBS:
            machine, _ = load_machine(str(EXAMPLES / example / "workflow.yaml"), kit)
            await publish(system.store, machine)
            value = json.loads((EXAMPLES / example / "inputs" / f"{name}.json").read_text(encoding="utf-8"))
            job = await submit(system.store, machine, value, datetime.now(UTC))
            label = f"{example} {name}"
            out.print(f"[bold]{label}[/]  job {job.id}")
            await Driver(system.runner, system.store, system.reads, {}).drive(job.id)
            overview = await system.reads.overview(job.id)
            if overview is None:
                raise LookupError(f"job {job.id} has vanished from the store")
            failure = "" if overview.failure is None else f": {overview.failure}, {overview.failure_detail}"
            out.print(f"  {coloured(overview.status)}{escape(failure)}")
            shown.append(Shown(label, machine, overview, await system.reads.turns(job.id)))
    return shown


def _kit() -> Kit:
    for example in dict.fromkeys(example for example, _ in JOBS):
        tools = EXAMPLES / example / "tools.py"
        if tools.exists():
            load_kit(str(tools))
    return load_kit(None)


def _table(shown: list[Shown]) -> Table:
    table = Table(title="\nEvery turn", title_justify="left", title_style="bold", box=None, expand=True)
    for name, right in (("job", 0), ("turn", 1), ("state", 0), ("attempts", 1), ("outcomes", 0)):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")
    for one in shown:
        for turn in one.turns:
            outcomes = ", ".join(
                f"{attempt.outcome}" + (f" ({attempt.cause})" if attempt.cause else "") for attempt in turn.attempts
            )
            last = answer(turn.attempts[-1]) if turn.attempts else ""
            label = one.label if turn.ordinal == 1 else ""
            table.add_row(label, str(turn.ordinal), turn.state, str(len(turn.attempts)), escape(outcomes), last)
    return table


def _print_rejection(out: Console, shown: list[Shown]) -> bool:
    """One answer that a rule rejected, the rule, and the answer that replaced it."""
    for one in shown:
        for turn in one.turns:
            pair = _mended(turn)
            if pair is None:
                continue
            rejected, accepted = pair
            rule = next(rule for rule in one.machine.ask(turn.state).rules if rule.id == rejected.cause)
            check = "" if rule.check is None else rule.check.source
            out.print(
                f"\n[bold]An answer that a rule rejected[/] ({one.label}, turn {turn.ordinal}, state {turn.state})"
            )
            out.print(f"  answer    {escape(answer(rejected))}")
            out.print(f"  rule      {escape(f'{rule.id}: {check}')}")
            for error in rejected.errors:
                out.print(f"  was told  {escape(f'{error.pointer}: {error.reason}')}")
            out.print(f"  answer    {escape(answer(accepted))}")
            return True
    out.print("\nNo answer was rejected by a rule and then replaced.")
    return False


def _mended(turn: TurnRecord) -> tuple[AttemptRecord, AttemptRecord] | None:
    for before, after in zip(turn.attempts, turn.attempts[1:], strict=False):
        if before.outcome is Outcome.SEMANTIC and after.outcome is Outcome.VALID:
            return before, after
    return None


def _print_further(out: Console, shown: list[Shown]) -> None:
    command = str(Path(sys.executable).with_name("stepladder"))
    query = "SELECT job_id, turn, attempt, outcome, cause, errors FROM attempt_outcomes WHERE outcome <> 'valid'"
    example = "examples/bug_report"
    out.print("\n[bold]Look further[/]")
    out.print(f"  {command} show {shown[-1].job.id} --raw", markup=False)
    out.print(f'  {command} psql -c "{query}"', markup=False)
    options = f"--app {example}/tools.py --input @{example}/inputs/accent.json"
    out.print(f"  {command} run {example}/workflow.yaml {options}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
