"""``stepladder replay --mode revalidate``: stored answers judged again, and the report on them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from stepladder.cli.arguments import parse_filter, refusal
from stepladder.cli.output import Exit, console, escape, print_json, progress_bar, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from stepladder.cli.session import Session
    from stepladder.judge.drift import Drift
    from stepladder.judge.revalidate import Rejudged
    from stepladder.models.listing import JobFilter
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Kit
    from stepladder.services.revalidation import By
    from stepladder.wiring.settings import Settings

KINDS = {
    "rejected": "accepted then, rejected now",
    "accepted": "rejected then, accepted now",
    "otherwise": "rejected both times, for another reason now",
}


def revalidate_many(
    settings: Settings,
    jobs: UUID | Mapping[str, Json],
    changes: JsonObject,
    document: str | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """Judges one job, or all that match a filter. Exit code 1 if a verdict changed."""
    from stepladder.cli.session import in_session
    from stepladder.services.revalidation import By
    from stepladder.wiring.app import kit_of, load_machine

    kit = kit_of(settings, document)
    by = By(None if document is None else load_machine(document, kit)[0], changes)
    if isinstance(jobs, UUID):
        found = in_session(settings, lambda session: _one(session, kit, jobs, by))
        raise typer.Exit(_tell_one(jobs, found, as_json=as_json))
    wanted = parse_filter(jobs)
    drift, seconds = in_session(settings, lambda session: _many(session, kit, wanted, by, limit))
    if as_json:
        print_json(drift.as_json() | {"seconds": round(seconds, 3)})
    else:
        tell(console(), drift, seconds)
    raise typer.Exit(Exit.FAILED if drift.total else Exit.DONE)


async def _one(session: Session, kit: Kit, job_id: UUID, by: By) -> tuple[Rejudged, ...]:
    from stepladder.workflows.replay import Refused

    await session.job(job_id)
    found = await session.replays(kit).revalidated(job_id, by.changes or {}, by.machine)
    if found is None:
        raise LookupError(f"job {job_id} has vanished from the store")
    if isinstance(found, Refused):
        raise refusal(found)
    return found


async def _many(session: Session, kit: Kit, wanted: JobFilter, by: By, limit: int | None) -> tuple[Drift, float]:
    from stepladder.models.answers import count
    from stepladder.services.revalidation import Revalidation

    total = await count(session.store.database, wanted)
    total = total if limit is None else min(total, limit)
    began = time.monotonic()
    with progress_bar("judging", "jobs, {task.fields[rate]}") as progress:
        task = progress.add_task("", total=total, rate="")

        def seen(drift: Drift) -> None:
            progress.update(task, completed=drift.jobs_seen + drift.skipped.total(), rate=_rate(drift, began))

        drift = await Revalidation(session.store, session.replays(kit), by, seen).of(wanted, limit)
    return drift, time.monotonic() - began


def _rate(drift: Drift, began: float) -> str:
    return f"{drift.judged / max(time.monotonic() - began, 1e-9):,.0f} attempts/s"


def _tell_one(job_id: UUID, found: tuple[Rejudged, ...], *, as_json: bool) -> int:
    from stepladder.judge.revalidate import report_of

    changed = sum(one.changed for one in found)
    if as_json:
        print_json({"attempts": [report_of(one) for one in found], "changed": changed})
        return Exit.FAILED if changed else Exit.DONE
    out = console()
    for one in found:
        place = escape(f"turn {one.turn} {one.state}, attempt {one.attempt}")
        was = _word(one.was.outcome, one.was.cause)
        if one.now is None:
            out.print(f"  {place}: {was}, not judged again ([dim]{one.why}[/])")
        elif one.changed:
            out.print(f"  {place}: {was} -> [bold yellow]{_word(one.now.outcome, one.now.cause)}[/]")
            for error in one.now.errors[:3] or one.was.errors[:3]:
                text = f"{error.pointer or '/'}: {error.reason}"
                out.print(f"      {escape(shorten(text, 90))}")
        else:
            out.print(f"  {place}: {was}, unchanged")
    said = f"{changed} of {len(found)} verdicts changed" if changed else "no verdict changed"
    out.print(f"job {job_id}: {said}")
    return Exit.FAILED if changed else Exit.DONE


def _word(outcome: str, cause: str | None) -> str:
    return escape(shorten(f"{outcome} ({cause})" if cause else outcome, 44))


def tell(out: Console, drift: Drift, seconds: float) -> None:
    """The report, within a hundred columns."""
    rate = drift.judged / max(seconds, 1e-9)
    out.print(f"{drift.judged:,} attempts of {drift.jobs_seen:,} jobs judged in {seconds:.1f} s: {rate:,.0f} a second")
    for reason, times in drift.unjudged.most_common():
        out.print(f"  {times:,} attempts not judged again: {_reason(reason)}")
    for reason, times in drift.skipped.most_common():
        out.print(f"  {times:,} jobs skipped: {escape(shorten(_reason(reason), 70))}")
    if drift.reworded:
        out.print(f"  {drift.reworded:,} verdicts are the same in other words")
    if not drift.total:
        out.print("[green]no drift[/]: no verdict changed")
        return
    out.print(f"[bold yellow]drift[/]: {drift.total:,} verdicts of {drift.changed_jobs:,} jobs changed")
    for change, title in KINDS.items():
        jobs = drift.jobs[change]  # type: ignore[index] # the words of Change
        if not jobs:
            continue
        out.print(f"\n{title}: {drift.changed[change]:,} attempts of {len(jobs):,} jobs")  # type: ignore[index] # as above
        for one in drift.examples[change]:  # type: ignore[index] # as above
            place = f"turn {one['turn']} {shorten(one['state'], 20)}, attempt {one['attempt']}"
            out.print(f"  {one['job']} {escape(place)}")
            out.print(f"    {_word(one['was'], one['was_cause'])} -> {_word(one['now'], one['now_cause'])}")
            for error in (one.get("now_errors") or one.get("was_errors") or [])[:1]:
                text = f"{error['pointer'] or '/'}: {error['reason']}"
                out.print(f"    {escape(shorten(text, 90))}")
        if len(jobs) > len(drift.examples[change]):  # type: ignore[index] # as above
            out.print("  and more: --json lists every job")


def _reason(reason: str) -> str:
    known = {
        "broken_off": "no complete answer arrived",
        "gone": "retention removed their bytes",
        "no_state": "the document does not ask the model in their state",
        "other_workflow": "the document is of another workflow",
    }
    return known.get(reason, reason)
