"""``stepladder replay --where``: many jobs resumed or forked, counted before, followed, and stopped."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import typer

from stepladder.cli.output import Exit, console, escape, print_json, shorten
from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.cli.session import Session
    from stepladder.models.bulks import Bulk
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit
    from stepladder.services.bulks import Estimate
    from stepladder.services.replays import Wanted
    from stepladder.wiring.settings import Settings

LOOK_S = 0.5


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
    """Says what it would do; with the word of whoever asks it orders the replays, which the workers hand out.

    The same order under the same ``key`` is the one that there is.
    """
    from stepladder.cli.revalidate import filter_typed
    from stepladder.cli.session import in_session
    from stepladder.wiring.app import kit_of

    if wanted.from_turn is not None or wanted.input:
        flag = "--from-turn" if wanted.from_turn is not None else "--input"
        raise BadInputError(f"{flag} is for one job", remedy="name a job in place of --where, or leave it out")
    filter_typed(where)
    kit = kit_of(settings)
    wish = _wish(where, wanted, concurrency, key)
    bulk = None if key is None or dry_run else in_session(settings, lambda session: _known(session, wish))
    if bulk is None:
        found = in_session(settings, lambda session: _estimate(session, kit, where, wanted))
        _tell(found, as_json=as_json and dry_run, error=not dry_run)
        if dry_run:
            return
        if found.jobs == 0:
            remedy = "see which there are: stepladder jobs --status failed"
            raise BadInputError("no job can be replayed so", remedy=remedy)
        if not yes and not (sys.stdin.isatty() and typer.confirm(f"replay {_many(found.jobs, 'job')}?", err=True)):
            raise BadInputError("nothing was done", remedy="say --yes, or look first with --dry-run")
        bulk = in_session(settings, lambda session: _order(session, wish))
    if wait:
        follow(settings, str(bulk.id), as_json=as_json)
    if as_json:
        print_json(bulk_json(bulk))
        return
    console().print(str(bulk.id))
    console(error=True).print(
        f"follow it: stepladder replay --follow {bulk.id}; --stop {bulk.id} stops it", style="dim"
    )


async def _estimate(session: Session, kit: Kit, where: Mapping[str, Json], wanted: Wanted) -> Estimate:
    from stepladder.cli.replay import replays_of
    from stepladder.models.where import filter_of
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.bulks import estimate

    return await estimate(session.store.database, replays_of(session, kit), filter_of(where), wanted, LOCAL)


def _wish(where: Mapping[str, Json], wanted: Wanted, concurrency: int, key: str | None) -> Bulk:
    """The order as it is typed, with nothing counted yet."""
    from stepladder.models.bulks import Bulk, bulk_id
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.bulks import PRIORITY

    return Bulk(
        id=bulk_id(LOCAL.name, key),
        where=where,
        mode=wanted.mode.value,
        changes=wanted.changes,
        concurrency=concurrency,
        priority=PRIORITY,
        principal=LOCAL.name,
        scopes=LOCAL.scopes,
        total=0,
        created_at=datetime.now(UTC),
    )


async def _known(session: Session, wish: Bulk) -> Bulk | None:
    """The order that was given under the same key before."""
    from stepladder.models.bulks import find_bulk

    found = await find_bulk(session.store.database, wish.id)
    if found is None:
        return None
    if found.asked != wish.asked:
        remedy = "order the same again, or use a new key; nothing was done"
        raise BadInputError("the idempotency key is taken by an order of other replays", remedy=remedy)
    console(error=True).print("this key was used before: the same order", style="dim")
    return found


async def _order(session: Session, wish: Bulk) -> Bulk:
    from stepladder.models.bulks import order_bulk
    from stepladder.models.where import filter_of
    from stepladder.services.bulks import total

    counted = await total(session.store.database, filter_of(wish.where), wish.created_at)
    bulk = replace(wish, total=counted)
    if await order_bulk(session.store.database, bulk):
        return bulk
    return await _known(session, bulk) or bulk


def _tell(found: Estimate, *, as_json: bool, error: bool = False) -> None:
    if as_json:
        names = ("jobs", "turns", "tokens", "cost", "currency", "refused")
        print_json({name: getattr(found, name) for name in names})
        return
    out = console(error=error)
    cost = "" if not found.cost else f", {found.cost:,.4f} {escape(found.currency or '')}".rstrip()
    if found.cost is None:
        cost = ", at prices that are not known"
    jobs, turns = _many(found.jobs, "job"), _many(found.turns, "turn")
    out.print(f"{jobs} would be replayed, and {turns} that gave an answer before asked again")
    out.print(f"  they took {found.tokens:,} tokens{cost}; what follows behind them nobody knows")
    for reason, times in found.refused.most_common(5):
        out.print(f"  {times:,} left out: {escape(shorten(reason, 80))}")


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def follow(settings: Settings, bulk_id: str, *, as_json: bool) -> None:
    """Shows how far an order has come, until it is done or stopped. Exit code 1 if one of its replays failed."""
    from stepladder.cli.session import in_session

    bulk = in_session(settings, lambda session: _followed(session, _id(bulk_id)))
    if as_json:
        print_json(bulk_json(bulk))
    else:
        _ended(bulk)
    raise typer.Exit(Exit.FAILED if bulk.jobs.get("failed", 0) or bulk.jobs.get("cancelled", 0) else Exit.DONE)


async def _followed(session: Session, bulk_id: UUID) -> Bulk:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task("", total=None, said="")
        while True:
            bulk = await _find(session, bulk_id)
            busy = sum(bulk.jobs.get(status, 0) for status in ("queued", "running", "paused"))
            gone = sum(bulk.jobs.values()) - busy + sum(bulk.refused.values())
            said = ", ".join(f"{times:,} {status}" for status, times in sorted(bulk.jobs.items()))
            progress.update(task, total=bulk.total, completed=gone, said=said)
            if bulk.state == "done" or (bulk.state == "stopped" and not busy):
                return bulk
            await asyncio.sleep(LOOK_S)


def stop(settings: Settings, bulk_id: str, *, as_json: bool) -> None:
    """No more replays of an order are begun."""
    from stepladder.cli.session import in_session
    from stepladder.models.bulks import stop_bulk

    async def work(session: Session) -> Bulk:
        await stop_bulk(session.store.database, _id(bulk_id))
        return await _find(session, _id(bulk_id))

    bulk = in_session(settings, work)
    if as_json:
        print_json(bulk_json(bulk))
    else:
        _ended(bulk)


async def _find(session: Session, bulk_id: UUID) -> Bulk:
    from stepladder.models.bulks import find_bulk

    found = await find_bulk(session.store.database, bulk_id)
    if found is None:
        raise BadInputError(f"there is no order of replays {bulk_id}", remedy="order one: stepladder replay --where")
    return found


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInputError(f"{text!r} is no id of an order", remedy="it was printed when it was given") from None


def _ended(bulk: Bulk) -> None:
    said = ", ".join(f"{times:,} {status}" for status, times in sorted(bulk.jobs.items())) or "none begun"
    console().print(f"{bulk.state}: of {bulk.total:,} jobs {sum(bulk.jobs.values()):,} replayed ({said})")
    for reason, times in sorted(bulk.refused.items()):
        console().print(f"  {times:,} left out: {escape(shorten(reason, 80))}")


def bulk_json(bulk: Bulk) -> dict[str, Any]:
    from stepladder.api.bulks import bulk_json

    return bulk_json(bulk)
