"""Replays from a job's page: resume, fork, or judge the stored answers again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import lacking
from stepladder.dashboard.context import context_of, form_of, job_of, require, session_of
from stepladder.dashboard.job import show_mistakes
from stepladder.dashboard.rendering import page
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.replay import Mode
from stepladder.services.replays import Started, Wanted
from stepladder.validation.parse import Parsed, parse
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.responses import Job

MODES = {mode.value: mode for mode in Mode}


async def replay(request: Request) -> Response:
    """Resumes or forks a job and redirects to the new one, or shows how its answers would be judged now."""
    require(request, Scope.WRITE)
    job, form = await job_of(request), form_of(request)
    wanted = _wanted(form)
    if isinstance(wanted, str):
        return await show_mistakes(request, job, wanted, replay=True)
    if wanted.mode is Mode.REVALIDATE:
        return await _revalidate(request, job, wanted)
    return await _replay(request, job, wanted)


async def _replay(request: Request, job: Job, wanted: Wanted) -> Response:
    services, principal = context_of(request).services, session_of(request).principal
    body: JsonObject = {"mode": wanted.mode.value, "from_turn": wanted.from_turn, "set": wanted.changes}
    # The page's own id, so that a second click makes no second job, but a corrected form does.
    text = f"{form_of(request).get('key', '')[:64]} {content_hash(body)}"
    try:
        found = await services.replays.start(job.id, wanted, principal, text)
    except BadDocumentError as error:
        raise lacking(error) from None
    if isinstance(found, Refused):
        return await show_mistakes(request, job, *_mistakes(found), replay=True)
    if not isinstance(found, Started):
        raise LookupError(f"job {job.id} has vanished from the store")
    return RedirectResponse(f"/jobs/{found.job_id}", 303)


async def _revalidate(request: Request, job: Job, wanted: Wanted) -> Response:
    try:
        found = await context_of(request).services.replays.revalidated(job.id, wanted.changes)
    except BadDocumentError as error:
        raise lacking(error) from None
    if isinstance(found, Refused):
        return await show_mistakes(request, job, *_mistakes(found), replay=True)
    return page(request, "revalidated.html", job=job, changes=dict(wanted.changes), judged=found or ())


def _mistakes(refused: Refused) -> list[str]:
    return [
        f"Nothing was started: {refused.reason}. {refused.remedy[:1].upper()}{refused.remedy[1:]}.",
        *(f"{finding.pointer or '/'}: {finding.message}" for finding in refused.findings[:10]),
    ]


def _wanted(form: Mapping[str, str]) -> Wanted | str:
    mode = MODES.get(form.get("mode", ""))
    if mode is None:
        return "Nothing was started: press one of the buttons."
    changes = {} if mode is Mode.RESUME else read_changes(form.get("set", ""))
    if isinstance(changes, str):
        return changes
    turn = form.get("from_turn", "") if mode is Mode.FORK else ""
    if turn and not (turn.isascii() and turn.isdigit() and 0 < int(turn[:12]) < 2**31):
        return f"Nothing was started: {turn[:20]!r} is not a turn."
    return Wanted(mode, int(turn) if turn else None, changes)


def read_changes(text: str) -> dict[str, Json] | str:
    """``PATH=VALUE`` on each line, the value as JSON or as plain text; or what is wrong with a line."""
    changes: dict[str, Json] = {}
    for line in text.splitlines():
        path, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not path.strip():
            return f"Nothing was started: {line[:60]!r} is not PATH=VALUE, such as states.bill.retry.attempts=5."
        parsed = parse(value.strip().encode("utf-8", "replace"))
        changes[path.strip()] = parsed.value if isinstance(parsed, Parsed) else value.strip()
    return changes
