"""Who is logged in: signed cookies that hold no key, and the tokens that hold forms to them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.api.access import LOCAL, Principal

if TYPE_CHECKING:
    from collections.abc import Callable

COOKIE = "stepladder_session"
LASTS_S = 12 * 3600
"""A working day; after it the key is asked for again."""


@dataclass(frozen=True, slots=True)
class Session:
    """``principal`` is None until somebody has logged in. ``until`` is in seconds since 1970."""

    id: str
    principal: Principal | None
    until: int


AT_HOME = Session("local", LOCAL, 0)
"""Without API keys nobody logs in: whoever is let in sits at this machine. It is in no cookie."""


class Sessions:
    """Seals sessions with ``secret``, and knows its own again. Whoever has the secret can log in as anybody."""

    def __init__(self, secret: bytes, now: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._now = now

    def begin(self, principal: Principal | None) -> Session:
        return Session(secrets.token_urlsafe(16), principal, int(self._now()) + LASTS_S)

    def seal(self, session: Session) -> str:
        """The text of the cookie."""
        principal = session.principal
        scopes = None if principal is None or principal.scopes is None else sorted(principal.scopes)
        fields = [session.id, None if principal is None else principal.name, scopes, session.until]
        body = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        return f"{body}.{self._sign('session', body)}"

    def open(self, cookie: str | None) -> Session | None:
        """The session, or None for a cookie that is not ours, was changed, or is too old."""
        body, _, signature = (cookie or "").partition(".")
        if not body or not _equal(self._sign("session", body), signature):
            return None
        try:
            session_id, name, scopes, until = json.loads(base64.urlsafe_b64decode(body))
        except (ValueError, binascii.Error):
            return None
        if until <= self._now():
            return None
        principal = None if name is None else Principal(name, None if scopes is None else frozenset(scopes))
        return Session(session_id, principal, until)

    def token(self, session: Session) -> str:
        """What every form of this session carries."""
        return self._sign("form", session.id)

    def fits(self, session: Session, token: str) -> bool:
        return _equal(self.token(session), token)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()


def _equal(ours: str, theirs: str) -> bool:
    return hmac.compare_digest(ours.encode(), theirs.encode("utf-8", "replace"))
