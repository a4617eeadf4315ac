"""Six real jobs of three examples, through ``stepladder up``, HTTP and Celery, on a real small model.

Run by ``scripts/demo``. Shows every turn's result, an answer that a rule rejected next to the one that replaced it,
and how to look further. Exit code 0 if at least five of the six succeed and a rejection can be shown.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from stepladder import Client
from stepladder.cli.output import Exit, coloured, console, escape, print_error
from stepladder.schemas.errors import StepladderError, UnreachableError
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.wiring.app import load_kit, load_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from stepladder.schemas.history import Attempt, TurnVisit
    from stepladder.schemas.responses import Job
    from stepladder.workflows.machine import Machine

EXAMPLES = Path("examples")
APP = "examples.all_tools"
JOBS = (
    ("bug_report", "crash"),
    ("bug_report", "typo"),
    ("usage_bill", "search"),
    ("usage_bill", "maps"),
    ("invoice", "coffee"),
    ("invoice", "books"),
)
ENOUGH = 5
PATIENCE_S = 300.0
STEPLADDER = str(Path(sys.executable).with_name("stepladder"))


@dataclass(frozen=True, slots=True)
class Shown:
    """One job as it ended."""

    label: str
    machine: Machine
    job: Job
    turns: tuple[TurnVisit, ...]


def main() -> int:
    out = console()
    try:
        with (
            console(error=True).status("starting PostgreSQL, Valkey, the model, a worker and the API") as status,
            up() as url,
        ):
            out.print(f"the system is up at {url}")
            shown = run(url, out, status.update)
    except StepladderError as error:
        return int(print_error(error))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    out.print(table(shown), soft_wrap=False)
    rejected = print_rejection(out, shown)
    succeeded = sum(one.job.status is JobStatus.SUCCEEDED for one in shown)
    out.print(f"\n[bold]{succeeded} of {len(shown)} jobs succeeded.[/]")
    print_further(out, shown)
    return 0 if succeeded >= ENOUGH and rejected else 1


@contextmanager
def up() -> Iterator[str]:
    """``stepladder up`` as a child, on a free port, until the block is left; gives its URL."""
    with tempfile.TemporaryFile("w+") as log:
        command = [STEPLADDER, "up", "--port", "0", "--app", APP, "--json"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 -- our own command
        try:
            line = "" if child.stdout is None else child.stdout.readline()
            if not line:
                child.wait()
                log.seek(0)
                last = "".join(log.readlines()[-15:])
                raise UnreachableError(
                    f"the system did not start; the end of its log:\n{last}", remedy="fix the reported problem"
                )
            yield str(json.loads(line)["url"])
        finally:
            child.send_signal(signal.SIGINT)
            child.wait()


def run(url: str, out: Console, busy: Callable[[str], None]) -> list[Shown]:
    """Publishes the examples, submits all jobs at once, and waits for each."""
    kit = load_kit(APP)
    with Client(url) as client:
        machines: dict[str, Machine] = {}
        submitted: list[tuple[str, str, Job]] = []
        for example, name in JOBS:
            document = EXAMPLES / example / "workflow.yaml"
            if example not in machines:
                machines[example] = load_machine(str(document), kit)[0]
                client.publish(document)
            value = json.loads((EXAMPLES / example / "inputs" / f"{name}.json").read_text(encoding="utf-8"))
            submitted.append((example, name, client.submit(machines[example].name, value)))
        busy("six jobs are running side by side")
        shown: list[Shown] = []
        for example, name, job in submitted:
            done = client.wait(job.id, timeout_s=PATIENCE_S)
            turns = tuple(client.turns(job.id))
            failure = "" if done.failure is None else f": {done.failure}, {done.failure_detail}"
            out.print(f"  {coloured(done.status)} {example} {name}, job {done.id}{escape(failure)}")
            shown.append(Shown(f"{example} {name}", machines[example], done, turns))
        return shown


def table(shown: list[Shown]) -> Table:
    table = Table(title="\nEvery turn", title_justify="left", title_style="bold", box=None, pad_edge=False, expand=True)
    for name, right in (("job", 0), ("turn", 1), ("state", 0), ("tries", 1), ("outcomes", 0)):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")
    for one in shown:
        for turn in one.turns:
            said = ", ".join(f"{a.outcome}" + (f" ({a.cause})" if a.cause else "") for a in turn.attempts)
            last = json.dumps(turn.output, separators=(",", ":"), ensure_ascii=False)
            label = one.label if turn.ordinal == 1 else ""
            table.add_row(label, str(turn.ordinal), turn.state, str(len(turn.attempts)), escape(said), escape(last))
    return table


def print_rejection(out: Console, shown: list[Shown]) -> bool:
    """One answer that a rule rejected, the rule, and the answer that replaced it."""
    for one in shown:
        for turn in one.turns:
            pair = mended(turn)
            if pair is None:
                continue
            rejected, accepted = pair
            rule = next(rule for rule in one.machine.ask(turn.state).rules if rule.id == rejected.cause)
            check = "" if rule.check is None else rule.check.source
            where = f"{one.label}, turn {turn.ordinal}, state {turn.state}"
            out.print(f"\n[bold]An answer that a rule rejected[/] ({where})")
            out.print(f"  answer    {escape(text(rejected))}")
            out.print(f"  rule      {escape(f'{rule.id}: {check}')}")
            for error in rejected.errors:
                out.print(f"  note      {escape(f'{error.pointer}: {error.reason}')}")
            out.print(f"  answer    {escape(text(accepted))}")
            return True
    out.print("\nNo answer was rejected by a rule and then replaced.")
    return False


def text(attempt: Attempt) -> str:
    return " ".join((attempt.content or "").split())


def mended(turn: TurnVisit) -> tuple[Attempt, Attempt] | None:
    for before, after in zip(turn.attempts, turn.attempts[1:], strict=False):
        if before.outcome is Outcome.SEMANTIC and after.outcome is Outcome.VALID:
            return before, after
    return None


def print_further(out: Console, shown: list[Shown]) -> None:
    query = "SELECT job_id, turn, attempt, outcome, cause, errors FROM attempt_outcomes WHERE outcome <> 'valid'"
    options = "--app examples/bug_report/tools.py --input @examples/bug_report/inputs/accent.json"
    out.print("\n[bold]Look further[/]")
    out.print(f"  {STEPLADDER} show {shown[-1].job.id} --raw", markup=False)
    out.print(f'  {STEPLADDER} psql -c "{query}"', markup=False)
    out.print(f"  {STEPLADDER} run examples/bug_report/workflow.yaml {options}", markup=False)
    out.print("The dashboard, with these jobs in it, at http://127.0.0.1:8700 until Ctrl-C:")
    out.print(f"  {STEPLADDER} up --app {APP}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
