"""The dashboard as an ASGI application: its routes, and what stands around each of them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from stepladder.api.access import Principal, Scope
from stepladder.api.body import media_type, read_body
from stepladder.api.problems import ProblemError, of_error
from stepladder.dashboard import actions, diffpage, jobpage, listpage, login, overviewpage, replaying, workflowpage
from stepladder.dashboard.desk import Counts, Desk, Guest
from stepladder.dashboard.render import HEADERS, assets, page
from stepladder.dashboard.sessions import AT_HOME, COOKIE, Sessions
from stepladder.models.counts import Tallies
from stepladder.schemas.errors import StepladderError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Send
    from starlette.types import Scope as AsgiScope

    from stepladder.api.dependencies import Services
    from stepladder.dashboard.sessions import Session
    from stepladder.models.database import Database

NOBODY = Principal("nobody", frozenset())
LONGEST_FORM = 1024 * 1024
MOST_FIELDS = 100
FORM = "application/x-www-form-urlencoded"


def make_dashboard(parts: Services, database: Database, *, secret: bytes | None = None) -> ASGIApp:
    """The dashboard over the API's ``parts`` and the ``database`` behind them.

    Without API keys it answers whom the API answers. With keys it asks for one, and gives a cookie that is signed with
    ``secret``; without a secret it makes one up, so that everybody logs in again when the process has been restarted,
    and processes beside each other do not know each other's cookies.
    """
    sessions = Sessions(secrets.token_bytes(32) if secret is None else secret)
    return _Dashboard(Desk(parts, Counts(Tallies(database)), sessions))


async def _static(request: Request) -> Response:
    """Whoever may ask at all may have these: the page that asks for a key wants them."""
    asset = assets().get(request.path_params["name"])
    if asset is None:
        raise ProblemError(404, "not-found", "there is no such file", remedy="reload the page that wanted it")
    headers = HEADERS | {"Cache-Control": "public, max-age=31536000, immutable", "ETag": asset.etag}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, 200, headers, media_type=asset.media_type)


ROUTES = (
    Route("/", overviewpage.show_overview),
    Route("/jobs", listpage.list_jobs),
    Route("/login", login.show_login),
    Route("/login", login.log_in, methods=["POST"]),
    Route("/logout", login.log_out, methods=["POST"]),
    Route("/jobs/{job_id}", jobpage.show_job),
    Route("/jobs/{job_id}/diff/{other}", diffpage.show_diff),
    Route("/jobs/{job_id}/part", jobpage.show_part),
    Route("/jobs/{job_id}/follow", jobpage.follow_job),
    Route("/jobs/{job_id}/cancel", actions.cancel, methods=["POST"]),
    Route("/jobs/{job_id}/pause", actions.pause, methods=["POST"]),
    Route("/jobs/{job_id}/unpause", actions.unpause, methods=["POST"]),
    Route("/jobs/{job_id}/signal", actions.signal, methods=["POST"]),
    Route("/jobs/{job_id}/settle", actions.settle, methods=["POST"]),
    Route("/jobs/{job_id}/replays", replaying.replay, methods=["POST"]),
    Route("/jobs/{job_id}/compare", jobpage.choose_other),
    Route("/workflows", workflowpage.list_workflows),
    Route("/workflows/{name}/{version:int}", workflowpage.show_version),
    Route("/workflows/{name}/pause", workflowpage.pause, methods=["POST"]),
    Route("/workflows/{name}/unpause", workflowpage.unpause, methods=["POST"]),
    Route("/workflows/{name}/{version:int}/pause", workflowpage.pause, methods=["POST"]),
    Route("/workflows/{name}/{version:int}/unpause", workflowpage.unpause, methods=["POST"]),
    Route("/workflows/{name}/{version:int}/retire", workflowpage.retire, methods=["POST"]),
    Route("/workflows/{name}/{version:int}/unretire", workflowpage.unretire, methods=["POST"]),
    Route("/attempts/{attempt_id}/raw", jobpage.download_raw),
    Route("/static/{name}", _static),
)
FOR_SCRIPTS = ("/part", "/follow")


async def _nowhere(scope: AsgiScope, _: Receive, __: Send) -> None:
    detail = f"there is no page at {scope['path'][:200]}"
    raise ProblemError(404, "not-found", detail, remedy="begin with the list of jobs")


class _Dashboard:
    """Lets nobody in whom ``access`` does not know, and no form without its token; shows every error as a page."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._router = Router(list(ROUTES), redirect_slashes=False, default=_nowhere)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        # Until it is known who asks, an error's page is shown to nobody.
        request.state.desk, request.state.guest = self._desk, Guest(AT_HOME, NOBODY, "")
        try:
            answer = await self._enter(request)
            if answer is None:
                await self._router(scope, receive, send)
                return
        except (ProblemError, StepladderError) as error:
            problem = error if isinstance(error, ProblemError) else of_error(error)
            answer = page(request, "problem.html", problem.status, problem=problem)
        await answer(scope, receive, send)

    async def _enter(self, request: Request) -> Response | None:
        """Finds out who asks and checks a form's token. The answer for whom it does not let in, else None."""
        desk, path = self._desk, request.url.path
        access = desk.parts.access
        if not access.wants_key:
            client = None if request.client is None else request.client.host
            principal = access.admit(request.headers, client)
            self._seat(request, AT_HOME, principal)
        elif path.startswith("/static/"):
            return None
        else:
            session = desk.sessions.open(request.cookies.get(COOKIE))
            if session is None or session.principal is None:
                return await self._greet(request, session)
            self._seat(request, session, session.principal, logged_in=True)
            principal = session.principal
        if not principal.may(Scope.READ) and path != "/logout":
            detail = f"the key {principal.name!r} lacks the scope {Scope.READ}"
            raise ProblemError(403, "forbidden", detail, remedy="log out, and log in with a key that has it")
        await self._read_form(request)
        return None

    async def _greet(self, request: Request, session: Session | None) -> Response | None:
        """Somebody whom we do not know: the page for logging in, and a session so that its form has a token."""
        path = request.url.path
        if path != "/login":
            if path.endswith(FOR_SCRIPTS) or request.method not in ("GET", "HEAD"):
                detail = "you are not logged in, or not any more"
                raise ProblemError(401, "unauthorized", detail, remedy="log in, and do it again; nothing was changed")
            following = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse("/login" if following == "/" else f"/login?{urlencode({'next': following})}", 303)
        fresh = session is None
        session = session or self._desk.sessions.begin(None)
        self._seat(request, session, NOBODY)
        if request.method == "POST":
            await self._read_form(request)
            return await login.log_in(request)
        answer = await login.show_login(request)
        if fresh:
            login.give_cookie(request, answer, session)
        return answer

    def _seat(self, request: Request, session: Session, principal: Principal, *, logged_in: bool = False) -> None:
        token = self._desk.sessions.token(session)
        request.state.guest = Guest(session, principal, token, logged_in)
        request.state.principal = principal  # whom the log names

    async def _read_form(self, request: Request) -> None:
        """Every form carries its session's token, which a page from elsewhere cannot know."""
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
        if not self._desk.sessions.fits(request.state.guest.session, form.pop("token", "")):
            detail = "this page is out of date: it was made before the server started anew, or for another login"
            raise ProblemError(403, "bad-token", detail, remedy="open the page again; nothing was changed")
        request.state.form = form
