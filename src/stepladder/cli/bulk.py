"""``stepladder replay --where``: many jobs resumed or forked: estimated, ordered, followed and stopped."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from stepladder.cli.output import Exit, console, escape, plural, print_json, progress_bar, shorten
from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.cli.session import Session
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.replay import BulkEstimate, BulkReplay
    from stepladder.schemas.tool import Kit
    from stepladder.services.replays import Wanted
    from stepladder.wiring.settings import Settings

POLL_S = 0.5


def replay_many(
    settings: Settings,
    where: Mapping[str, Json],
    wanted: Wanted,
    concurrency: int,
    key: str | None,
    *,
    dry_run: bool,
    yes: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Shows what it would do and, once confirmed, orders the replays, which the workers start.

    The same order with the same ``key`` is given once.
    """
    from stepladder.cli.session import in_session
    from stepladder.models.bulks import bulk_id, find_bulk
    from stepladder.schemas.actor import LOCAL
    from stepladder.wiring.app import kit_of

    if wanted.from_turn is not None or wanted.input:
        flag = "--from-turn" if wanted.from_turn is not None else "--input"
        raise BadInputError(f"{flag} is for one job", remedy="name a job in place of --where, or leave it out")
    kit = kit_of(settings)

    async def known(session: Session) -> bool:
        return key is not None and await find_bulk(session.store.database, bulk_id(LOCAL.name, key)) is not None

    if dry_run or not in_session(settings, known):
        found = in_session(settings, lambda session: _estimate(session, kit, where, wanted))
        if dry_run and as_json:
            print_json(found)
        else:
            _print_estimate(found, error=not dry_run)
        if dry_run:
            return
        if found.jobs == 0:
            remedy = "see which there are: stepladder jobs --status failed"
            raise BadInputError("no matching job can be replayed", remedy=remedy)
        question = f"replay {plural(found.jobs, 'job')}?"
        if not yes and not (sys.stdin.isatty() and typer.confirm(question, err=True)):
            raise BadInputError("nothing was done", remedy="confirm with --yes, or look first with --dry-run")
    bulk = in_session(settings, lambda session: _order(session, where, wanted, concurrency, key))
    if wait:
        follow(settings, str(bulk.id), as_json=as_json)
    if as_json:
        print_json(bulk)
        return
    console().print(str(bulk.id))
    hint = f"follow it: stepladder replay --follow {bulk.id}; --stop {bulk.id} stops it"
    console(error=True).print(hint, style="dim")


async def _estimate(session: Session, kit: Kit, where: Mapping[str, Json], wanted: Wanted) -> BulkEstimate:
    from stepladder.cli.arguments import parse_filter
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.bulks import estimate

    return await estimate(session.store.database, session.replays(kit), parse_filter(where), wanted, LOCAL)


async def _order(
    session: Session, where: Mapping[str, Json], wanted: Wanted, concurrency: int, key: str | None
) -> BulkReplay:
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.bulks import order

    found = await order(session.store.database, where, wanted, LOCAL, key, concurrency=concurrency)
    if found is None:
        remedy = "order the same again, or use a new key; nothing was done"
        raise BadInputError("the idempotency key is taken by an order of other replays", remedy=remedy)
    bulk, again = found
    if again:
        console(error=True).print("this key was used before: the same order", style="dim")
    return bulk


def _print_estimate(found: BulkEstimate, *, error: bool) -> None:
    out = console(error=error)
    cost = "" if not found.cost else f", {found.cost:,.4f} {escape(found.currency or '')}".rstrip()
    if found.cost is None:
        cost = ", at unknown prices"
    jobs, turns = plural(found.jobs, "job"), plural(found.turns or 0, "turn")
    out.print(f"{jobs} would be replayed, and {turns} asked again")
    out.print(f"  they took {found.tokens:,} tokens{cost} before; later turns are not estimated")
    for reason, times in sorted(found.refused.items(), key=lambda item: -item[1])[:5]:
        out.print(f"  {times:,} left out: {escape(shorten(reason, 80))}")


def follow(settings: Settings, order: str, *, as_json: bool) -> None:
    """Shows how far an order has come, until it is done or stopped. Exit code 1 if one of its replays failed."""
    from stepladder.cli.session import in_session

    bulk = in_session(settings, lambda session: _followed(session, _id(order)))
    _print_bulk(bulk, as_json=as_json)
    raise typer.Exit(Exit.FAILED if bulk.jobs.get("failed") or bulk.jobs.get("cancelled") else Exit.DONE)


async def _followed(session: Session, bulk_id: UUID) -> BulkReplay:
    from stepladder.models.bulks import BUSY

    with progress_bar("replaying") as progress:
        task = progress.add_task("", total=None, suffix="")
        while True:
            bulk = await _find(session, bulk_id)
            busy = sum(bulk.jobs.get(status, 0) for status in BUSY)
            finished = bulk.handed_out - busy + sum(bulk.refused.values())
            progress.update(task, total=bulk.total, completed=finished, suffix=_counts(bulk))
            if bulk.state == "done" or (bulk.state == "stopped" and not busy):
                return bulk
            await asyncio.sleep(POLL_S)


def stop(settings: Settings, order: str, *, as_json: bool) -> None:
    """Starts no more replays of an order."""
    from stepladder.cli.session import in_session
    from stepladder.models.bulks import stop_bulk

    async def work(session: Session) -> BulkReplay:
        await stop_bulk(session.store.database, _id(order))
        return await _find(session, _id(order))

    _print_bulk(in_session(settings, work), as_json=as_json)


async def _find(session: Session, bulk_id: UUID) -> BulkReplay:
    from stepladder.models.bulks import find_bulk

    found = await find_bulk(session.store.database, bulk_id)
    if found is None:
        raise BadInputError(f"there is no order of replays {bulk_id}", remedy="order one: stepladder replay --where")
    return found


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        remedy = "the command that ordered the replays printed it"
        raise BadInputError(f"{text!r} is not the id of an order", remedy=remedy) from None


def _counts(bulk: BulkReplay) -> str:
    return ", ".join(f"{times:,} {status}" for status, times in sorted(bulk.jobs.items()))


def _print_bulk(bulk: BulkReplay, *, as_json: bool) -> None:
    if as_json:
        print_json(bulk)
        return
    out = console()
    out.print(f"{bulk.state}: of {bulk.total:,} jobs {bulk.handed_out:,} replayed ({_counts(bulk) or 'none started'})")
    for reason, times in sorted(bulk.refused.items()):
        out.print(f"  {times:,} left out: {escape(shorten(reason, 80))}")
