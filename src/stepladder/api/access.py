"""Authentication and scopes: API keys, or, without keys, loopback clients."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from stepladder.api.problems import ProblemError
from stepladder.schemas import actor
from stepladder.schemas.actor import Actor
from stepladder.schemas.errors import BadInputError
from stepladder.validation.parse import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

EVERYTHING = "*"
"""The scope that includes all others, and every tool's permissions."""


class Scope(StrEnum):
    """What the routes require. A key's other scopes are permissions for the tools of its jobs."""

    READ = "jobs:read"
    """Everything that only reads: workflows, jobs, events, raw answers, engines, metrics."""
    WRITE = "jobs:write"
    """Submit, cancel, pause and unpause."""
    PUBLISH = "workflows:write"
    SIGNAL = "signals:write"
    SETTLE = "settlements:write"
    """Settle whether an irreversible tool took effect."""
    ADMIN = "admin"
    """All routes, but no tool."""


@dataclass(frozen=True, slots=True)
class Principal(Actor):
    """Who sent a request."""

    def may(self, scope: Scope) -> bool:
        return self.scopes is None or not self.scopes.isdisjoint((scope, Scope.ADMIN))


LOCAL = Principal(actor.LOCAL.name)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's hash, and its principal."""

    principal: Principal
    digest: bytes = field(repr=False)
    max_in_flight: int | None = None
    """How many of its jobs may be in flight at once; None means the setting for all principals."""


class _KeyText(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=100)
    key: str = Field(min_length=1, max_length=1000)
    scopes: list[str]
    max_in_flight: int | None = Field(None, ge=0, le=2**31 - 1)


def parse_keys(text: str) -> tuple[ApiKey, ...]:
    """``[{"name", "key", "scopes", "max_in_flight"?}]`` as JSON.

    Raises ``BadInputError`` for anything else, and quotes no key.
    """
    parsed = parse(text.encode("utf-8", "surrogateescape"))
    if isinstance(parsed, NotJson):
        raise _bad_keys(f"not JSON ({parsed.cause} at character {parsed.offset})")
    try:
        keys = TypeAdapter(list[_KeyText]).validate_python(parsed.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = "/".join(str(step) for step in first["loc"])
        raise _bad_keys(f"at /{place}: {first['msg'].lower()}") from None
    if not keys:
        raise _bad_keys("the list is empty")
    for word in ("name", "key"):
        if len({getattr(key, word) for key in keys}) < len(keys):
            raise _bad_keys(f"two keys have the same {word}")
    return tuple(ApiKey(Principal(key.name, _scopes(key.scopes)), _digest(key.key), key.max_in_flight) for key in keys)


def _scopes(scopes: Sequence[str]) -> frozenset[str] | None:
    return None if EVERYTHING in scopes else frozenset(scopes)


def _bad_keys(what: str) -> BadInputError:
    remedy = 'write a JSON list such as [{"name": "ci", "key": "a long random word", "scopes": ["jobs:read"]}]'
    return BadInputError(f"STEPLADDER_API_KEYS cannot be used: {what}", remedy=remedy)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


class Access:
    """Authenticates requests. Raises ``ProblemError`` where that fails."""

    def __init__(self, keys: Sequence[ApiKey] = ()) -> None:
        self._keys = tuple(keys)

    @property
    def wants_key(self) -> bool:
        return bool(self._keys)

    def admit(self, headers: Headers, client: str | None) -> Principal:
        """``client`` is the peer's address; None for a local socket."""
        if not self._keys:
            _check_local(headers, client)
            return LOCAL
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("no API key was sent", "send the header Authorization: Bearer KEY")
        principal = self.principal(key.strip())
        if principal is None:
            raise _unauthorized("unknown API key", "send one of the keys of STEPLADDER_API_KEYS", "invalid_token")
        return principal

    def principal(self, key: str) -> Principal | None:
        """The principal of a key. A wrong key takes as long as a right one."""
        digest = _digest(key)
        found = [known.principal for known in self._keys if hmac.compare_digest(known.digest, digest)]
        return found[0] if found else None


def _unauthorized(detail: str, remedy: str, error: str = "") -> ProblemError:
    challenge = 'Bearer realm="stepladder"' + (f', error="{error}"' if error else "")
    return ProblemError(401, "unauthorized", detail, remedy=remedy, headers={"WWW-Authenticate": challenge})


SET_KEYS = "set STEPLADDER_API_KEYS and send a key"
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
HOSTS = ("localhost", "127.0.0.1", "::1")


def _check_local(headers: Headers, client: str | None) -> None:
    """Without keys: the connection comes from this machine, and not from a foreign web page."""
    if not _is_loopback(client) or any(name in headers for name in FORWARDED):
        detail = "without API keys the API answers only this machine"
        raise ProblemError(403, "not-local", detail, remedy=SET_KEYS)
    # DNS rebinding: a page whose name resolves to this machine sends its own name here.
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _hostname(hosts[0]) not in HOSTS:
        detail = f"without API keys the Host header must be one of {', '.join(HOSTS)}"
        raise ProblemError(403, "wrong-host", detail, remedy=SET_KEYS)
    # A foreign page may send forms here; its browser says so.
    origin = headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != hosts[0]
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        detail = "without API keys the API answers no cross-site request"
        raise ProblemError(403, "cross-site", detail, remedy=SET_KEYS)


def _is_loopback(client: str | None) -> bool:
    if client is None:
        return True
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _hostname(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
