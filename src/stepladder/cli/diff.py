"""``stepladder diff``: two jobs compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stepladder.cli.options import AsJson, JobId, OtherJob
from stepladder.cli.output import console, escape, make_table, print_json, shorten
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console
    from rich.table import Table

    from stepladder.cli.session import Session
    from stepladder.schemas.diff import Change, JobDiff, PairOfVisits, Ran, Visited
    from stepladder.schemas.jsontypes import Json

SHOWN_CHANGES = 12  # of one value; --json has them all
SHOWN_VALUE = 34  # characters of each side of a change
LONG = 40  # characters of a pointer


def diff(job: JobId, other: OtherJob, as_json: AsJson = False) -> None:
    """Compare two jobs: outcomes, actions, outputs, attempts, tokens and time of every turn and tool."""
    from stepladder.cli.session import in_session

    async def compare(session: Session) -> JobDiff:
        return await session.reads.diff(await session.job(job), await session.job(other))

    found = in_session(load_settings(), compare)
    if as_json:
        print_json(found)
    else:
        print_diff(console(), found)


def print_diff(out: Console, found: JobDiff) -> None:
    """Both jobs, a line for every pair of visits, and what changed in each; within a hundred columns."""
    out.print(_heads(found.job, found.other), soft_wrap=False)
    print_changes(out, "input", found.input)
    if found.visits:
        out.print("")
        out.print(_visits(found.visits), soft_wrap=False)
    for pair in found.visits:
        what = f"{pair.kind} {pair.state}{'' if pair.nth == 1 else f' ({pair.nth})'}"
        print_changes(out, f"{what} was given", pair.given)
        print_changes(out, what, pair.output)
    print_changes(out, "result", found.result)
    if found.same:
        out.print("both took the same path to the same end")


def _heads(job: Ran, other: Ran) -> Table:
    from stepladder.cli.output import coloured

    counts = ("turns", "tries", "tokens", "s")
    table = make_table("", "job", "workflow", "status", *counts, wide=("workflow",), right=counts)
    for mark, one in (("-", job), ("+", other)):
        table.add_row(
            mark,
            str(one.id),
            escape(f"{one.workflow} {one.version}{'' if one.variant is None else ' changed'}"),
            coloured(one.failure or one.status),
            str(one.turns),
            str(one.attempts),
            f"{one.tokens:,}",
            "" if one.seconds is None else f"{one.seconds:.1f}",
        )
    return table


def _visits(pairs: Sequence[PairOfVisits]) -> Table:
    wide, counts = ("state", "outcome", "action"), ("tries", "tokens", "ms")
    table = make_table("", "visit", *wide, *counts, wide=wide, right=counts)
    for pair in pairs:
        mark = "+" if pair.was is None else "-" if pair.now is None else "~" if pair.differs else "="
        colour = {"+": "green", "-": "red", "~": "yellow", "=": "dim"}[mark]
        table.add_row(
            f"[{colour}]{mark}[/]",
            _place(pair),
            escape(pair.state + ("" if pair.nth == 1 else f" ({pair.nth})")),
            escape(_both(pair, _outcome)),
            escape(_both(pair, lambda one: one.action or "")),
            _both(pair, lambda one: "" if one.attempts is None else str(one.attempts)),
            _both(pair, lambda one: "" if one.tokens is None else str(one.tokens)),
            _both(pair, lambda one: "" if one.ms is None else f"{one.ms:.0f}"),
        )
    return table


def _place(pair: PairOfVisits) -> str:
    turns = [one.turn for one in (pair.was, pair.now) if one is not None and one.turn is not None]
    if not turns:
        return pair.kind
    return f"turn {'→'.join(str(turn) for turn in dict.fromkeys(turns))}"


def _outcome(one: Visited) -> str:
    words = [one.outcome, one.cause, "(carried)" if one.carried else None]
    return " ".join(word for word in words if word is not None)


def _both(pair: PairOfVisits, show: Callable[[Visited], str]) -> str:
    sides = [show(one) for one in (pair.was, pair.now) if one is not None]
    return sides[0] if len(set(sides)) == 1 else "→".join(side or "-" for side in sides)


def print_changes(out: Console, what: str, changes: Sequence[Change]) -> None:
    """A line for each change, with the old and the new value."""
    if not changes:
        return
    out.print(f"  {escape(shorten(what, 90))}")
    for change in changes[:SHOWN_CHANGES]:
        where = escape(shorten(change.pointer or "/", LONG))
        match change.kind:
            case "added":
                out.print(f"    [green]+[/] {where}  {_shown(change.now, 2)}")
            case "removed":
                out.print(f"    [red]-[/] {where}  {_shown(change.was, 2)}")
            case "changed":
                out.print(f"    [yellow]~[/] {where}  {_shown(change.was)} → {_shown(change.now)}")
    if len(changes) > SHOWN_CHANGES:
        out.print(f"    {len(changes) - SHOWN_CHANGES} more, which --json lists")


def _shown(value: Json, sides: int = 1) -> str:
    return escape(shorten(json.dumps(value, ensure_ascii=False, default=list), SHOWN_VALUE * sides - sides))
