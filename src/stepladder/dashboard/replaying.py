"""A job run again from its page, or its answers judged again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import lacking
from stepladder.dashboard.desk import demand, desk_of, form_of, guest_of, job_of
from stepladder.dashboard.jobpage import values
from stepladder.dashboard.render import page
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.replay import Mode
from stepladder.services.replays import Started, Wanted
from stepladder.validation.parse import Parsed, parse
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.responses import Job

MODES = {mode.value: mode for mode in Mode}


async def replay(request: Request) -> Response:
    """Resumes or forks a job, and leads to the new one; or shows what its answers would be judged as now."""
    demand(request, Scope.WRITE)
    job, form = await job_of(request), form_of(request)
    wanted = _wanted(form)
    if isinstance(wanted, str):
        return await _told(request, job, [wanted])
    if wanted.mode is Mode.REVALIDATE:
        return await _judged_again(request, job, wanted)
    return await _run_again(request, job, wanted)


async def _run_again(request: Request, job: Job, wanted: Wanted) -> Response:
    parts, principal = desk_of(request).parts, guest_of(request).principal
    body: JsonObject = {"mode": wanted.mode.value, "from_turn": wanted.from_turn, "set": wanted.changes}
    # The page's own id, so that a second click makes no second job, and what was mended meanwhile makes one.
    text = f"{form_of(request).get('key', '')[:64]} {content_hash(body)}"
    try:
        found = await parts.replays.start(job.id, wanted, principal, text)
    except BadDocumentError as error:
        raise lacking(error) from None
    if isinstance(found, Refused):
        return await _told(request, job, _mistakes(found))
    if not isinstance(found, Started):
        raise LookupError(f"job {job.id} has vanished from the store")
    return RedirectResponse(f"/jobs/{found.job_id}", 303)


async def _judged_again(request: Request, job: Job, wanted: Wanted) -> Response:
    try:
        found = await desk_of(request).parts.replays.revalidated(job.id, wanted.changes)
    except BadDocumentError as error:
        raise lacking(error) from None
    if isinstance(found, Refused):
        return await _told(request, job, _mistakes(found))
    return page(request, "judged.html", job=job, changes=dict(wanted.changes), judged=found or ())


async def _told(request: Request, job: Job, mistakes: Sequence[str]) -> Response:
    shown: dict[str, Any] = await values(request, job) | {"refused": mistakes, "typed": dict(form_of(request))}
    return page(request, "job.html", 422, **shown)


def _mistakes(refused: Refused) -> list[str]:
    listed = [f"{finding.pointer or '/'}: {finding.message}" for finding in refused.findings[:10]]
    return [f"Nothing was begun: {refused.reason}. {refused.remedy[:1].upper()}{refused.remedy[1:]}.", *listed]


def _wanted(form: Mapping[str, str]) -> Wanted | str:
    mode = MODES.get(form.get("mode", ""))
    if mode is None:
        return "Press one of the buttons; nothing was begun."
    changes = {} if mode is Mode.RESUME else read_changes(form.get("set", ""))
    if isinstance(changes, str):
        return changes
    turn = form.get("from_turn", "") if mode is Mode.FORK else ""
    if turn and not (turn.isascii() and turn.isdigit() and 0 < int(turn[:12]) < 2**31):
        return f"{turn[:20]!r} is no turn; nothing was begun."
    return Wanted(mode, int(turn) if turn else None, changes)


def read_changes(text: str) -> dict[str, Json] | str:
    """``PATH=VALUE`` on each line, the value as JSON or, where it is none, as the text that it is."""
    changes: dict[str, Json] = {}
    for line in text.splitlines():
        path, sign, value = line.partition("=")
        if not line.strip():
            continue
        if not sign or not path.strip():
            return f"{line[:60]!r} is no change; write PATH=VALUE, such as states.bill.retry.attempts=5."
        parsed = parse(value.strip().encode("utf-8", "replace"))
        changes[path.strip()] = parsed.value if isinstance(parsed, Parsed) else value.strip()
    return changes
