"""Logging in with an API key, and out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from stepladder.dashboard.context import context_of, form_of, session_of
from stepladder.dashboard.rendering import page
from stepladder.dashboard.sessions import COOKIE, LIFETIME_S

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.dashboard.sessions import Session

_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path on this server: nothing that a browser takes for another host, or that ends a header."""


async def show_login(request: Request) -> Response:
    if not context_of(request).services.access.wants_key or session_of(request).logged_in:
        return RedirectResponse("/", 303)
    return page(request, "login.html", mistake=None, following=_own_path(request.query_params.get("next")))


async def log_in(request: Request) -> Response:
    """The key is compared in constant time and not kept; the cookie says whose it was."""
    context, form = context_of(request), form_of(request)
    following = _own_path(form.get("next"))
    principal = context.services.access.principal(form.get("key", "").strip())
    if principal is None:
        mistake = "Unknown key. Copy it again from STEPLADDER_API_KEYS, without quotes."
        return page(request, "login.html", 403, mistake=mistake, following=following)
    response = RedirectResponse(following, 303)
    set_cookie(request, response, context.sessions.begin(principal))
    return response


async def log_out(request: Request) -> Response:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_secure(request))
    return response


def set_cookie(request: Request, response: Response, session: Session) -> None:
    text = context_of(request).sessions.seal(session)
    response.set_cookie(COOKIE, text, max_age=LIFETIME_S, httponly=True, samesite="strict", secure=_is_secure(request))


def _is_secure(request: Request) -> bool:
    """Whether the browser uses https, to us or to a proxy in front of us. A false header harms only its sender."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"


def _own_path(text: str | None) -> str:
    return text if text is not None and _OWN_PATH.fullmatch(text) else "/"
