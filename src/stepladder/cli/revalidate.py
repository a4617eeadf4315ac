"""``stepladder replay --mode revalidate``: stored answers judged again, and what changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from stepladder.cli.arguments import parse_filter, refusal
from stepladder.cli.output import Exit, console, escape, plural, print_json, progress_bar, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from stepladder.cli.session import Session
    from stepladder.judge.drift import Drift
    from stepladder.judge.revalidate import Rejudged
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Kit
    from stepladder.services.revalidation import By
    from stepladder.wiring.settings import Settings

TITLES = {
    "rejected": "accepted before, rejected now",
    "accepted": "rejected before, accepted now",
    "otherwise": "rejected before and now, for another reason",
}
REASONS = {
    "broken_off": "no complete answer arrived",
    "gone": "the answer was removed by retention",
    "no_state": "the workflow does not ask the model in that state",
    "other_workflow": "the document is of another workflow",
    "unique": "its list needs unique elements, which one line cannot express",
    "missing_tools": "this process lacks tools or rules of the workflow: name them with --app",
}


def revalidate(
    settings: Settings,
    jobs: UUID | Mapping[str, Json],
    changes: JsonObject,
    document: str | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """Judge the answers of one job, or of all that match a filter, and exit with code 1 if a verdict changed."""
    from stepladder.cli.session import in_session
    from stepladder.services.revalidation import By
    from stepladder.wiring.app import kit_of, load_machine

    kit = kit_of(settings, document)
    by = By(None if document is None else load_machine(document, kit)[0], changes)
    if isinstance(jobs, UUID):
        found = in_session(settings, lambda session: _one(session, kit, jobs, by))
        raise typer.Exit(_print_one(jobs, found, as_json=as_json))
    wanted = parse_filter(jobs)
    drift, seconds = in_session(settings, lambda session: _many(session, kit, wanted, by, limit))
    if as_json:
        print_json(drift.as_json() | {"seconds": round(seconds, 3)})
    else:
        _print_drift(console(), drift, seconds)
    raise typer.Exit(Exit.FAILED if drift.total else Exit.DONE)


async def _one(session: Session, kit: Kit, job_id: UUID, by: By) -> tuple[Rejudged, ...]:
    from stepladder.workflows.replay import Refused

    await session.job(job_id)
    found = await session.replays(kit).revalidated(job_id, by.changes or {}, by.machine)
    if isinstance(found, Refused):
        raise refusal(found)
    if found is None:
        raise LookupError(f"job {job_id} has vanished from the store")
    return found


async def _many(session: Session, kit: Kit, wanted: JobFilter, by: By, limit: int | None) -> tuple[Drift, float]:
    from stepladder.queries.answers import count
    from stepladder.services.revalidation import Revalidation

    total = await count(session.store.database, wanted)
    total = total if limit is None else min(total, limit)
    began = time.monotonic()
    with progress_bar("judging", "jobs, {task.fields[rate]}") as progress:
        task = progress.add_task("", total=total, rate="")

        def update(drift: Drift) -> None:
            rate = f"{drift.judged / max(time.monotonic() - began, 1e-9):,.0f} attempts/s"
            progress.update(task, completed=drift.jobs_seen + drift.skipped.total(), rate=rate)

        drift = await Revalidation(session.store, session.replays(kit), by, update).of(wanted, limit)
    return drift, time.monotonic() - began


def _print_one(job_id: UUID, found: tuple[Rejudged, ...], *, as_json: bool) -> Exit:
    from stepladder.judge.revalidate import report_of

    changed = sum(one.changed for one in found)
    if as_json:
        print_json({"attempts": [report_of(one) for one in found], "changed": changed})
        return Exit.FAILED if changed else Exit.DONE
    out = console()
    for one in found:
        place = f"turn {one.turn} {one.state}, attempt {one.attempt}"
        was = f"  {escape(place)}: {_verdict(one.was.outcome, one.was.cause)}"
        if one.now is None:
            out.print(f"{was}, not judged again ([dim]{one.why}[/])")
        elif one.changed:
            out.print(f"{was} -> [bold yellow]{_verdict(one.now.outcome, one.now.cause)}[/]")
            for error in one.now.errors[:3] or one.was.errors[:3]:
                _print_error(out, error.pointer, error.reason)
        else:
            out.print(f"{was}, unchanged")
    verdicts = f"{changed} of {plural(len(found), 'verdict')} changed" if changed else "no verdict changed"
    out.print(f"job {job_id}: {verdicts}")
    return Exit.FAILED if changed else Exit.DONE


def _verdict(outcome: str, cause: str | None) -> str:
    return escape(shorten(f"{outcome} ({cause})" if cause else outcome, 44))


def _print_error(out: Console, pointer: str, reason: str) -> None:
    out.print("      " + escape(shorten(f"{pointer or '/'}: {reason}", 90)))


def _print_drift(out: Console, drift: Drift, seconds: float) -> None:
    rate = drift.judged / max(seconds, 1e-9)
    judged = f"{plural(drift.judged, 'attempt')} of {plural(drift.jobs_seen, 'job')} judged"
    out.print(f"{judged} in {seconds:.1f} s: {rate:,.0f} a second")
    for reason, times in drift.unjudged.most_common():
        out.print(f"  {plural(times, 'attempt')} not judged again: {REASONS.get(reason, reason)}")
    for reason, times in drift.skipped.most_common():
        out.print(f"  {plural(times, 'job')} skipped: {escape(shorten(REASONS.get(reason, reason), 70))}")
    if drift.reworded:
        out.print(f"  {plural(drift.reworded, 'verdict')} unchanged but for the wording")
    if not drift.total:
        out.print("[green]no drift[/]: no verdict changed")
        return
    out.print(f"[bold yellow]drift[/]: {plural(drift.total, 'verdict')} of {plural(drift.changed_jobs, 'job')} changed")
    for change, jobs in drift.jobs.items():
        if not jobs:
            continue
        attempts = plural(drift.changed[change], "attempt")
        out.print(f"\n{TITLES[change]}: {attempts} of {plural(len(jobs), 'job')}")
        for one in drift.examples[change]:
            place = f"turn {one['turn']} {shorten(one['state'], 20)}, attempt {one['attempt']}"
            out.print(f"  {one['job']} {escape(place)}")
            now = _verdict(str(one["now"]), one["now_cause"])
            out.print(f"    {_verdict(one['was'], one['was_cause'])} -> {now}")
            for error in (one.get("now_errors") or one.get("was_errors") or [])[:1]:
                _print_error(out, error["pointer"], error["reason"])
        if len(jobs) > len(drift.examples[change]):
            out.print("  and more, listed by --json")
