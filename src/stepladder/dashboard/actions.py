"""Buttons and forms of a job: each writes, and redirects to the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import ProblemError
from stepladder.dashboard.context import context_of, form_of, job_of, require, session_of
from stepladder.dashboard.job import show_mistakes
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

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job


async def cancel(request: Request) -> Response:
    require(request, Scope.WRITE)
    job = await job_of(request)
    return await _done(request, job, await context_of(request).services.store.request_cancel(job.id))


async def pause(request: Request) -> Response:
    require(request, Scope.WRITE)
    job = await job_of(request)
    store, by = context_of(request).services.store, session_of(request).principal.name
    return await _done(request, job, await store.pause(job.id, by))


async def unpause(request: Request) -> Response:
    require(request, Scope.WRITE)
    job = await job_of(request)
    store, by = context_of(request).services.store, session_of(request).principal.name
    return await _done(request, job, await store.unpause(job.id, by))


async def signal(request: Request) -> Response:
    """Sends the signal that the job waits for. A rejection is shown next to the user's input."""
    require(request, Scope.SIGNAL)
    job, form, sender = await job_of(request), form_of(request), session_of(request).principal
    payload = _payload(form)
    if isinstance(payload, str):
        return await show_mistakes(request, job, payload)
    if job.status.final or job.waiting_for is None or job.waiting_for != form.get("name"):
        return await show_mistakes(request, job, "Nothing was sent: the job no longer waits for this signal.")
    services = context_of(request).services
    try:
        machine = await services.machines.get(job.workflow, job.version, job.variant)
    except BadDocumentError:
        return await show_mistakes(request, job, _lacks_tools(job, "signal"))
    rejected = refusal(machine, await services.reads.open_wait(job.id), form["name"], payload, sender, job.principal)
    if rejected is not None:
        status = 403 if isinstance(rejected, Forbidden) else 422
        return await show_mistakes(request, job, f"Nothing was sent: {rejected.reason}.", status=status)
    return await _done(request, job, await services.store.signal(job.id, _key(form), form["name"], payload, sender))


async def settle(request: Request) -> Response:
    """Records whether a tool took effect. A rejection is shown next to the user's input."""
    require(request, Scope.SETTLE)
    job, form, services = await job_of(request), form_of(request), context_of(request).services
    settled = _settled(form, session_of(request).principal.name)
    if isinstance(settled, str):
        return await show_mistakes(request, job, settled)
    try:
        found = await keep_settlement(services.store, services.reads, services.machines, job, settled, form.get("key"))
    except BadDocumentError:
        return await show_mistakes(request, job, _lacks_tools(job, "result"))
    match found:
        case Misfit(tool, violations):
            listed = "; ".join(f"{violation.pointer or '/'} {violation.reason}" for violation in violations[:5])
            return await show_mistakes(request, job, f"Nothing was sent: {tool} returns no such result: {listed}.")
        case NotKept(_, reason):
            return await show_mistakes(request, await job_of(request), f"Nothing was sent: {reason}.")
        case Settling.ACCEPTED:
            services.notify([job.id])
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def _done(request: Request, job: Job, receipt: Receipt) -> Response:
    if receipt in (Receipt.FINAL, Receipt.UNKNOWN):
        now = await job_of(request)
        status = f"is {now.status}" if now.status.final else "is being cancelled"
        raise ProblemError(409, "job-ended", f"job {job.id} {status}", remedy="nothing was changed; go back to the job")
    if receipt is Receipt.ACCEPTED:
        context_of(request).services.notify([job.id])
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _settled(form: Mapping[str, str], by: str) -> Settled | str:
    """The settlement, or what is wrong with the form."""
    match form.get("done"):
        case "no":
            return Settled(False, by=by)
        case "yes":
            parsed = parse(form.get("result", "").encode("utf-8", "replace"))
            return _not_json(parsed, "result") if isinstance(parsed, NotJson) else Settled(True, parsed.value, by)
        case _:
            return "Nothing was sent: press one of the two buttons."


def _payload(form: Mapping[str, str]) -> dict[str, Json] | str:
    """The payload, or what is wrong with the form."""
    parsed = parse((form.get("payload", "").strip() or "{}").encode("utf-8", "replace"))
    if isinstance(parsed, NotJson):
        return _not_json(parsed, "payload")
    if not isinstance(parsed.value, Mapping):
        return 'Nothing was sent: the payload must be a JSON object, such as {"by": "me"}.'
    return {**parsed.value, **{name: form[name] for name in ("action", "wait_id") if form.get(name)}}


def _not_json(found: NotJson, what: str) -> str:
    reason = found.reason.replace("the answer", f"the {what}", 1)
    return f"Nothing was sent: the {what} is not JSON: {reason} (at character {found.offset})."


def _lacks_tools(job: Job, what: str) -> str:
    return (
        f"Nothing was sent: this server lacks the tools that {job.workflow} {job.version} names, and cannot check the"
        f" {what}. Start it with the STEPLADDER_APP that registers them."
    )


def _key(form: Mapping[str, str]) -> UUID:
    """The form's own id, so that a second click sends nothing new."""
    try:
        return UUID(form.get("key", ""))
    except ValueError:
        return uuid7()
