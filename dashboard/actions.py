"""What the buttons do: each writes, and leads back to the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import ProblemError
from stepladder.dashboard.desk import desk_of, form_of, guest_of, job_of
from stepladder.dashboard.jobpage import values
from stepladder.dashboard.render import page
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt
from stepladder.runner.signals import refusal
from stepladder.schemas.finding import BadDocumentError
from stepladder.validation.parse import NotJson, parse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.dashboard.desk import Desk
    from stepladder.models.reads import Overview
    from stepladder.schemas.jsontypes import Json


async def cancel(request: Request) -> Response:
    _demand(request, Scope.WRITE)
    job = await job_of(request)
    return await _done(request, job, await desk_of(request).parts.store.request_cancel(job.id))


async def pause(request: Request) -> Response:
    _demand(request, Scope.WRITE)
    job = await job_of(request)
    store, name = desk_of(request).parts.store, guest_of(request).principal.name
    return await _done(request, job, await store.pause(job.id, name))


async def unpause(request: Request) -> Response:
    _demand(request, Scope.WRITE)
    job = await job_of(request)
    store, name = desk_of(request).parts.store, guest_of(request).principal.name
    return await _done(request, job, await store.unpause(job.id, name))


async def signal(request: Request) -> Response:
    """Sends the signal that the job waits for. What the wait would refuse is told beside what was typed."""
    _demand(request, Scope.SIGNAL)
    job, form, desk = await job_of(request), form_of(request), desk_of(request)
    payload = _payload(form)
    mistake = payload if isinstance(payload, str) else await _mistake(desk, job, form, payload)
    if mistake is not None:
        shown = await values(request, job)
        return page(request, "job.html", 422, **shown | {"mistakes": [mistake], "typed": dict(form)})
    receipt = await desk.parts.store.signal(job.id, _key(form), form["name"], payload)
    return await _done(request, job, receipt)


def _demand(request: Request, scope: Scope) -> None:
    principal = guest_of(request).principal
    if not principal.may(scope):
        detail = f"the key {principal.name!r} lacks the scope {scope}"
        raise ProblemError(403, "forbidden", detail, remedy=f"log in with a key that has {scope}")


async def _done(request: Request, job: Overview, receipt: Receipt) -> Response:
    if receipt in (Receipt.FINAL, Receipt.UNKNOWN):
        now = await job_of(request)
        said = f"is {now.status}" if now.status.final else "is being cancelled"
        raise ProblemError(409, "job-ended", f"job {job.id} {said}", remedy="nothing was changed; go back to the job")
    if receipt is Receipt.ACCEPTED:
        await desk_of(request).parts.ring_job(job)
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _payload(form: Mapping[str, str]) -> dict[str, Json] | str:
    """The payload that the fields make, or what is wrong with them."""
    text = form.get("payload", "").strip() or "{}"
    parsed = parse(text.encode("utf-8", "replace"))
    if isinstance(parsed, NotJson):
        reason = parsed.reason.replace("the answer", "the payload", 1)
        return f"The payload is no JSON: {reason} (at character {parsed.offset}). Mend it; nothing was sent."
    if not isinstance(parsed.value, Mapping):
        return 'The payload must be a JSON object, such as {"by": "me"}. Mend it; nothing was sent.'
    chosen = {name: form[name] for name in ("action", "wait_id") if form.get(name)}
    return {**parsed.value, **chosen}


async def _mistake(desk: Desk, job: Overview, form: Mapping[str, str], payload: dict[str, Json]) -> str | None:
    if job.status.final or job.waiting_for is None or job.waiting_for != form.get("name"):
        return "The job does not wait for this signal any more; this is how it stands now. Nothing was sent."
    try:
        machine = await desk.parts.machines.get(job.workflow, job.version)
    except BadDocumentError:
        return (
            f"This server lacks the tools that {job.workflow} {job.version} names, and cannot check the signal."
            " Start it with the STEPLADDER_APP that registers them; nothing was sent."
        )
    found = refusal(machine, await desk.parts.reads.open_wait(job.id), form["name"], payload)
    return None if found is None else f"The signal would be refused: {found.reason}. Mend it; nothing was sent."


def _key(form: Mapping[str, str]) -> UUID:
    """The form's own id, so that a second click sends nothing new."""
    try:
        return UUID(form.get("key", ""))
    except ValueError:
        return uuid7()
