"""What the buttons do: each writes, and leads back to the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import ProblemError
from stepladder.dashboard.desk import demand, desk_of, form_of, guest_of, job_of
from stepladder.dashboard.jobpage import values
from stepladder.dashboard.render import page
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt, Settling
from stepladder.schemas.finding import BadDocumentError
from stepladder.services.settlement import Misfit, NotKept
from stepladder.services.settlement import settle as keep_settlement
from stepladder.services.signals import Forbidden, refusal
from stepladder.validation.parse import NotJson, parse
from stepladder.workflows.events import Settled

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.api.access import Principal
    from stepladder.dashboard.desk import Desk
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job


async def cancel(request: Request) -> Response:
    demand(request, Scope.WRITE)
    job = await job_of(request)
    return await _done(request, job, await desk_of(request).parts.store.request_cancel(job.id))


async def pause(request: Request) -> Response:
    demand(request, Scope.WRITE)
    job = await job_of(request)
    store, name = desk_of(request).parts.store, guest_of(request).principal.name
    return await _done(request, job, await store.pause(job.id, name))


async def unpause(request: Request) -> Response:
    demand(request, Scope.WRITE)
    job = await job_of(request)
    store, name = desk_of(request).parts.store, guest_of(request).principal.name
    return await _done(request, job, await store.unpause(job.id, name))


async def signal(request: Request) -> Response:
    """Sends the signal that the job waits for. What the wait would refuse is told beside what was typed."""
    demand(request, Scope.SIGNAL)
    job, form, desk, sender = await job_of(request), form_of(request), desk_of(request), guest_of(request).principal
    payload = _payload(form)
    mistake = payload if isinstance(payload, str) else await _mistake(desk, job, form, payload, sender)
    if mistake is not None:
        status = 403 if isinstance(mistake, Forbidden) else 422
        told = f"Nothing was sent: {mistake.reason}." if isinstance(mistake, Forbidden) else mistake
        shown = await values(request, job)
        return page(request, "job.html", status, **shown | {"mistakes": [told], "typed": dict(form)})
    receipt = await desk.parts.store.signal(job.id, _key(form), form["name"], payload, sender)
    return await _done(request, job, receipt)


async def settle(request: Request) -> Response:
    """Says whether a tool took effect. What cannot be kept is told beside what was typed."""
    demand(request, Scope.SETTLE)
    job, form, desk = await job_of(request), form_of(request), desk_of(request)
    said = _said(form, guest_of(request).principal.name)
    mistake = said if isinstance(said, str) else await _settled(desk, job, form.get("key"), said)
    if mistake is None:
        return RedirectResponse(f"/jobs/{job.id}", 303)
    shown = await values(request, await job_of(request))
    return page(request, "job.html", 422, **shown | {"mistakes": [mistake], "typed": dict(form)})


def _said(form: Mapping[str, str], by: str) -> Settled | str:
    """What the pressed button says, or what is wrong with the fields."""
    match form.get("done"):
        case "no":
            return Settled(False, by=by)
        case "yes":
            parsed = parse(form.get("result", "").encode("utf-8", "replace"))
            if isinstance(parsed, NotJson):
                reason = parsed.reason.replace("the answer", "the result", 1)
                return f"The result is no JSON: {reason} (at character {parsed.offset}). Mend it; nothing was sent."
            return Settled(True, parsed.value, by)
        case _:
            return "Press one of the two buttons; nothing was sent."


async def _settled(desk: Desk, job: Job, key: str | None, said: Settled) -> str | None:
    """None where it is kept, or was already; else why it is not."""
    parts = desk.parts
    try:
        found = await keep_settlement(parts.store, parts.reads, parts.machines, job, said, key)
    except BadDocumentError:
        return (
            f"This server lacks the tools that {job.workflow} {job.version} names, and cannot check the result."
            " Start it with the STEPLADDER_APP that registers them; nothing was sent."
        )
    match found:
        case Misfit(tool, violations):
            listed = "; ".join(f"{violation.pointer or '/'} {violation.reason}" for violation in violations[:5])
            return f"The result is none that {tool} returns: {listed}. Mend it; nothing was sent."
        case NotKept(_, reason):
            return f"Nothing was kept: {reason}. This is how the job stands now."
        case Settling.ACCEPTED:
            parts.notify([job.id])
    return None


async def _done(request: Request, job: Job, receipt: Receipt) -> Response:
    if receipt in (Receipt.FINAL, Receipt.UNKNOWN):
        now = await job_of(request)
        said = f"is {now.status}" if now.status.final else "is being cancelled"
        raise ProblemError(409, "job-ended", f"job {job.id} {said}", remedy="nothing was changed; go back to the job")
    if receipt is Receipt.ACCEPTED:
        desk_of(request).parts.notify([job.id])
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


async def _mistake(
    desk: Desk, job: Job, form: Mapping[str, str], payload: dict[str, Json], sender: Principal
) -> str | Forbidden | None:
    if job.status.final or job.waiting_for is None or job.waiting_for != form.get("name"):
        return "The job does not wait for this signal any more; this is how it stands now. Nothing was sent."
    try:
        machine = await desk.parts.machines.get(job.workflow, job.version, job.variant)
    except BadDocumentError:
        return (
            f"This server lacks the tools that {job.workflow} {job.version} names, and cannot check the signal."
            " Start it with the STEPLADDER_APP that registers them; nothing was sent."
        )
    wait = await desk.parts.reads.open_wait(job.id)
    found = refusal(machine, wait, form["name"], payload, sender, job.principal)
    if isinstance(found, Forbidden):
        return found
    return None if found is None else f"The signal would be refused: {found.reason}. Mend it; nothing was sent."


def _key(form: Mapping[str, str]) -> UUID:
    """The form's own id, so that a second click sends nothing new."""
    try:
        return UUID(form.get("key", ""))
    except ValueError:
        return uuid7()
