"""``stepladder stats``: rates, attempts per turn, tokens and costs by workflow."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import filters
from stepladder.cli.options import AsJson
from stepladder.cli.output import console, escape, make_table, print_json, shorten
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.times import since_of
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from stepladder.schemas.stats import WorkflowStats

MANY = 3  # attempts of a turn, counted as one group from here on


def stats(
    workflow: filters.Workflows = None,
    principal: filters.Principals = None,
    status: filters.Statuses = None,
    failure: filters.Failures = None,
    outcome: filters.Outcomes = None,
    cause: filters.Causes = None,
    rule: filters.Rules = None,
    state: filters.States = None,
    parent: filters.Parent = None,
    replay_of: filters.ReplaysOf = None,
    metadata: filters.Metadata = None,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="how long ago (90m, 24h, 7d), or a time (RFC 3339)")
    ] = "24h",
    as_json: AsJson = False,
) -> None:
    """Show rates, attempts per turn, tokens and costs by workflow, retries included.

    All options except --since filter jobs, as in `stepladder jobs`; all attempts of those jobs are counted.
    """
    from stepladder.cli.session import in_session
    from stepladder.schemas.stats import Stats

    at = since_of(since, datetime.now(UTC))
    if at is None:
        remedy = "write --since 24h, --since 7d or --since 2026-01-31T12:30:00Z"
        raise BadInputError(f"--since: {since!r} is not a time", remedy=remedy)
    wanted = filters.read_filter(
        workflow=workflow,
        principal=principal,
        status=status,
        failure=failure,
        outcome=outcome,
        cause=cause,
        rule=rule,
        state=state,
        parent=parent,
        replay_of=replay_of,
        metadata=metadata,
    )
    found = in_session(load_settings(), lambda session: session.reads.stats(at, wanted=wanted))
    if as_json:
        print_json(Stats(since=at, workflows=list(found)).as_json())
        return
    for one in found:
        print_stats(console(), one, at)
    if not found:
        whose = f" of {' or '.join(workflow)}" if workflow else ""
        message = f"nothing{whose} since {at:%Y-%m-%d %H:%M} UTC; look further back: --since 30d"
        console(error=True).print(escape(message))
    elif all(one.cost is None for one in found):
        hint = "no costs are known: set STEPLADDER_PRICES and restart a worker or the API"
        console(error=True).print(hint, style="dim")


def print_stats(out: Console, stats: WorkflowStats, since: datetime) -> None:
    """One workflow: a few lines, and a table of its tokens by outcome."""
    jobs, rates = stats.jobs, stats.rates
    out.print(f"[bold]{escape(shorten(stats.workflow, 60))}[/] since {since:%Y-%m-%d %H:%M} UTC")
    ended = f"{jobs.succeeded} succeeded, {jobs.failed} failed, {jobs.cancelled} cancelled"
    out.print(f"  jobs      {ended}; {jobs.live} live now")
    if not stats.attempts:
        out.print("")
        return
    out.print(f"  outputs   {stats.usable} usable, of {stats.answers} answers to {stats.attempts} attempts")
    out.print(
        f"  rates     validity {_percent(rates.validity)}   truncation {_percent(rates.truncation)}"
        f"   zero-token {_percent(rates.zero_token)}   transport {_percent(rates.transport)}"
    )
    out.print(
        f"            first-pass format {_percent(rates.first_pass_format)}   semantic {_percent(rates.semantic_pass)}"
    )
    out.print(f"  attempts  {_attempts(stats)}")
    for rule in stats.observed:
        out.print(f"  observed  {escape(shorten(rule.rule, 40))} broken by {rule.attempts} answers, not rejected")
    out.print(_outcomes(stats), soft_wrap=False)
    out.print(f"  per usable output: {_per_usable(stats)}\n")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _attempts(stats: WorkflowStats) -> str:
    few = [f"{took.turns} took {took.attempts}" for took in stats.attempts_per_turn if took.attempts < MANY]
    many = sum(took.turns for took in stats.attempts_per_turn if took.attempts >= MANY)
    return "a turn: " + ", ".join([*few, f"{many} took {MANY} or more"])


def _outcomes(stats: WorkflowStats) -> Table:
    numbers = ("attempts", "prompt", "completion", "tokens", stats.currency or "cost")
    table = make_table("  outcome", "cause", *numbers, wide=("cause",), right=numbers)
    total = stats.prompt_tokens + stats.completion_tokens
    for share in stats.outcomes:
        tokens = share.prompt_tokens + share.completion_tokens
        table.add_row(
            f"  {share.outcome}",
            escape(share.cause or ""),
            str(share.attempts),
            f"{share.prompt_tokens:,}",
            f"{share.completion_tokens:,}",
            _percent(tokens / total if total else None),
            _money(share.cost),
        )
    counts = (str(stats.attempts), f"{stats.prompt_tokens:,}", f"{stats.completion_tokens:,}", "")
    table.add_row("  all", "", *counts, _money(stats.cost), style="bold")
    return table


def _per_usable(stats: WorkflowStats) -> str:
    if stats.tokens_per_usable is None:
        return "none"
    tokens = f"{stats.tokens_per_usable:,.1f} tokens"
    if stats.cost_per_usable is None:
        return f"{tokens}, retries included"
    return f"{tokens}, {_money(stats.cost_per_usable)} {escape(stats.currency or '')}".rstrip() + ", retries included"


def _money(amount: float | None) -> str:
    """Two decimals, or for small amounts three significant digits."""
    if amount is None:
        return "-"
    return f"{amount:,.2f}" if amount == 0 or amount >= 1 else format(Decimal(f"{amount:.3g}"), "f")
