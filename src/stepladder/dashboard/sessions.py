"""Signed cookies that say who is logged in without holding the key, and the token in each form against CSRF."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepladder.api.access import LOCAL, Principal, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

COOKIE = "stepladder_session"
LIFETIME_S = 12 * 3600
ANONYMOUS = Principal("nobody", frozenset())


@dataclass(frozen=True, slots=True)
class Session:
    """Who makes a request. Every form of the session carries ``token``; ``expires`` is in seconds since 1970."""

    principal: Principal
    expires: int = 0
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @property
    def known(self) -> bool:
        return self.principal != ANONYMOUS

    @property
    def logged_in(self) -> bool:
        """False without API keys, when there is no login."""
        return self.known and self.expires > 0

    @property
    def may_write(self) -> bool:
        return self.principal.may(Scope.WRITE)

    @property
    def may_publish(self) -> bool:
        return self.principal.may(Scope.PUBLISH)

    @property
    def may_signal(self) -> bool:
        return self.principal.may(Scope.SIGNAL)

    @property
    def may_settle(self) -> bool:
        return self.principal.may(Scope.SETTLE)


class Sessions:
    """Signs cookies with a secret of this process: a restart logs everyone out."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._secret = secrets.token_bytes(32)
        self._now = now
        self.local = Session(LOCAL)

    def begin(self, principal: Principal) -> Session:
        return Session(principal, int(self._now()) + LIFETIME_S)

    def seal(self, session: Session) -> str:
        """The cookie's text."""
        scopes = None if session.principal.scopes is None else sorted(session.principal.scopes)
        fields = [session.principal.name, scopes, session.expires, session.token]
        body = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        return f"{body}.{self._sign(body)}"

    def open(self, cookie: str | None) -> Session | None:
        """The session, or None for a cookie that is forged, changed or expired."""
        body, _, signature = (cookie or "").partition(".")
        if not hmac.compare_digest(self._sign(body).encode(), signature.encode("utf-8", "replace")):
            return None
        name, scopes, expires, token = json.loads(base64.urlsafe_b64decode(body))
        principal = Principal(name, None if scopes is None else frozenset(scopes))
        return Session(principal, expires, token) if expires > self._now() else None

    def _sign(self, body: str) -> str:
        return hmac.new(self._secret, body.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
