"""Logging in by key, and out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from stepladder.dashboard.desk import desk_of, form_of, guest_of
from stepladder.dashboard.render import page
from stepladder.dashboard.sessions import COOKIE, LASTS_S

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.dashboard.sessions import Session

_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of this server: what a browser could take for another host, or end a header with, does not fit."""


async def show_login(request: Request) -> Response:
    if not desk_of(request).parts.access.wants_key or guest_of(request).logged_in:
        return RedirectResponse("/", 303)
    return page(request, "login.html", mistake=None, following=_own_path(request.query_params.get("next")))


async def log_in(request: Request) -> Response:
    """The key is compared in constant time, and is not kept: the cookie says whose it was."""
    desk, form = desk_of(request), form_of(request)
    following = _own_path(form.get("next"))
    principal = desk.parts.access.principal(form.get("key", "").strip())
    if principal is None:
        mistake = "This key is not known. Copy it again from STEPLADDER_API_KEYS, without quotes."
        return page(request, "login.html", 403, mistake=mistake, following=following)
    answer = RedirectResponse(following, 303)
    give_cookie(request, answer, desk.sessions.begin(principal))
    return answer


async def log_out(request: Request) -> Response:
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=is_secure(request))
    return answer


def give_cookie(request: Request, answer: Response, session: Session) -> None:
    text = desk_of(request).sessions.seal(session)
    answer.set_cookie(COOKIE, text, max_age=LASTS_S, httponly=True, samesite="strict", secure=is_secure(request))


def is_secure(request: Request) -> bool:
    """Whether the browser speaks https, to us or to a proxy before us. Who lies about it harms himself."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"


def _own_path(text: str | None) -> str:
    return text if text is not None and _OWN_PATH.fullmatch(text) else "/"
