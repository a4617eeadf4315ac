"""The dashboard as an ASGI application: its routes, and who may use them."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route, Router

from stepladder.api.access import Scope
from stepladder.api.body import media_type, read_body
from stepladder.api.problems import ProblemError, of_error
from stepladder.dashboard import actions, diff, job, jobs, login, overview, replays, workflows
from stepladder.dashboard.context import Context
from stepladder.dashboard.rendering import Assets, page
from stepladder.dashboard.sessions import ANONYMOUS, COOKIE, Session, Sessions
from stepladder.queries.counts import Tallies
from stepladder.schemas.errors import StepladderError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send
    from starlette.types import Scope as AsgiScope

    from stepladder.api.dependencies import Services
    from stepladder.models.database import Database

LONGEST_FORM = 1024 * 1024
MOST_FIELDS = 100
FORM = "application/x-www-form-urlencoded"
POST = ["POST"]

ROUTES = (
    Route("/", overview.show_overview),
    Route("/jobs", jobs.list_jobs),
    Route("/login", login.show_login),
    Route("/login", login.log_in, methods=POST),
    Route("/logout", login.log_out, methods=POST),
    Route("/jobs/{job_id}", job.show_job),
    Route("/jobs/{job_id}/diff/{other}", diff.show_diff),
    Route("/jobs/{job_id}/part", job.show_part),
    Route("/jobs/{job_id}/follow", job.follow_job),
    Route("/jobs/{job_id}/cancel", actions.cancel, methods=POST),
    Route("/jobs/{job_id}/pause", actions.pause, methods=POST),
    Route("/jobs/{job_id}/unpause", actions.unpause, methods=POST),
    Route("/jobs/{job_id}/signal", actions.signal, methods=POST),
    Route("/jobs/{job_id}/settle", actions.settle, methods=POST),
    Route("/jobs/{job_id}/replays", replays.replay, methods=POST),
    Route("/jobs/{job_id}/compare", diff.choose_other),
    Route("/workflows", workflows.list_workflows),
    Route("/workflows/{name}/{version:int}", workflows.show_version),
    Route("/workflows/{name}/pause", workflows.pause, methods=POST),
    Route("/workflows/{name}/unpause", workflows.unpause, methods=POST),
    Route("/workflows/{name}/{version:int}/pause", workflows.pause, methods=POST),
    Route("/workflows/{name}/{version:int}/unpause", workflows.unpause, methods=POST),
    Route("/workflows/{name}/{version:int}/retire", workflows.retire, methods=POST),
    Route("/workflows/{name}/{version:int}/unretire", workflows.unretire, methods=POST),
    Route("/attempts/{attempt_id}/raw", job.download_raw),
    Mount("/static", Assets()),
)
FOR_SCRIPTS = ("/part", "/follow")


def make_dashboard(services: Services, database: Database) -> ASGIApp:
    """The dashboard over the API's ``services`` and its ``database``.

    Without API keys it serves the clients that the API serves. With keys it asks for one and gives a cookie that only
    this process accepts.
    """
    context = Context(services, Tallies(database), Sessions())
    router = Router(list(ROUTES), redirect_slashes=False, default=_not_found)

    async def dashboard(scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        # Until the session is known, error pages show nothing to log out of.
        request.state.context, request.state.session = context, Session(ANONYMOUS)
        try:
            response = await _authenticate(request, context)
            if response is None:
                await router(scope, receive, send)
                return
        except HTTPException as error:
            response = _problem(request, ProblemError(error.status_code, "not-found", "there is no such file"))
        except ProblemError as error:
            response = _problem(request, error)
        except StepladderError as error:
            response = _problem(request, of_error(error))
        await response(scope, receive, send)

    return dashboard


async def _not_found(scope: AsgiScope, _: Receive, __: Send) -> None:
    detail = f"there is no page at {scope['path'][:200]}"
    raise ProblemError(404, "not-found", detail, remedy="start at the list of jobs")


def _problem(request: Request, problem: ProblemError) -> Response:
    return page(request, "problem.html", problem.status, problem=problem)


async def _authenticate(request: Request, context: Context) -> Response | None:
    """Sets the request's session and checks its form's token. The response for clients that are not let in."""
    access, path = context.services.access, request.url.path
    if not access.wants_key:
        access.admit(request.headers, None if request.client is None else request.client.host)
        session = context.sessions.local
    elif path.startswith("/static/"):  # the login page needs them
        return None
    else:
        known = context.sessions.open(request.cookies.get(COOKIE))
        if known is None or not known.known:
            return await _ask_for_key(request, context, known)
        session = known
    _enter(request, session)
    if not session.principal.may(Scope.READ) and path != "/logout":
        detail = f"the key {session.principal.name!r} lacks the scope {Scope.READ}"
        raise ProblemError(403, "forbidden", detail, remedy="log out, and log in with a key that has it")
    await _read_form(request, session)
    return None


async def _ask_for_key(request: Request, context: Context, session: Session | None) -> Response:
    """The login page, with an anonymous session so that its form has a token."""
    path = request.url.path
    if path != "/login":
        if path.endswith(FOR_SCRIPTS) or request.method not in ("GET", "HEAD"):
            raise ProblemError(401, "unauthorized", "you are not logged in", remedy="log in; nothing was changed")
        following = path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse("/login" if following == "/" else f"/login?{urlencode({'next': following})}", 303)
    anonymous = session or context.sessions.begin(ANONYMOUS)
    _enter(request, anonymous)
    if request.method == "POST":
        await _read_form(request, anonymous)
        return await login.log_in(request)
    response = await login.show_login(request)
    if session is None:
        login.set_cookie(request, response, anonymous)
    return response


def _enter(request: Request, session: Session) -> None:
    request.state.session = session
    request.state.principal = session.principal  # for the access log


async def _read_form(request: Request, session: Session) -> None:
    """Reads the form of a POST, which must carry the session's token."""
    request.state.form = {}
    if request.method in ("GET", "HEAD"):
        return
    if media_type(request) != FORM:
        raise ProblemError(415, "unsupported-media-type", f"this takes forms, as {FORM}", remedy="use the page")
    text = (await read_body(request, LONGEST_FORM)).decode("utf-8", "replace")
    try:
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise ProblemError(400, "bad-form", "the form has too many fields", remedy="use the page") from None
    if not hmac.compare_digest(session.token.encode(), form.pop("token", "").encode("utf-8", "replace")):
        detail = "this page is out of date: the server restarted, or you logged in again"
        raise ProblemError(403, "bad-token", detail, remedy="open the page again; nothing was changed")
    request.state.form = form
