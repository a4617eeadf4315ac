"""Who may ask for what: API keys with scopes, or, without keys, whoever sits at this machine."""

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
"""The scope that holds all others, the permissions of tools among them."""


class Scope(StrEnum):
    """What the routes ask for. A key's other scopes are the permissions that its jobs' tools may use."""

    READ = "jobs:read"
    """Everything that only looks: workflows, jobs, events, raw answers, engines, metrics."""
    WRITE = "jobs:write"
    """Submit, cancel, pause and unpause."""
    PUBLISH = "workflows:write"
    SIGNAL = "signals:write"
    SETTLE = "settlements:write"
    """Say whether a tool that cannot be undone took effect."""
    ADMIN = "admin"
    """All routes, and no tool."""


@dataclass(frozen=True, slots=True)
class Principal(Actor):
    """Who asks."""

    def may(self, scope: Scope) -> bool:
        return self.scopes is None or not self.scopes.isdisjoint((scope, Scope.ADMIN))


LOCAL = Principal(actor.LOCAL.name)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept: its hash, and whom it stands for."""

    principal: Principal
    digest: bytes = field(repr=False)
    max_in_flight: int | None = None
    """How many of its jobs workers may have in hand at once; None leaves it to the setting for all."""


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
        raise _bad_keys(f"no JSON ({parsed.cause} at character {parsed.offset})")
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
            raise _bad_keys(f"two of them have the same {word}")
    return tuple(ApiKey(Principal(key.name, _scopes(key.scopes)), _digest(key.key), key.max_in_flight) for key in keys)


def _scopes(scopes: Sequence[str]) -> frozenset[str] | None:
    return None if EVERYTHING in scopes else frozenset(scopes)


def _bad_keys(what: str) -> BadInputError:
    remedy = 'write a JSON list such as [{"name": "ci", "key": "a long random word", "scopes": ["jobs:read"]}]'
    return BadInputError(f"STEPLADDER_API_KEYS cannot be used: {what}", remedy=remedy)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


class Access:
    """Finds out who asks. Raises ``ProblemError`` for whom it does not let in."""

    def __init__(self, keys: Sequence[ApiKey] = ()) -> None:
        self._keys = tuple(keys)

    @property
    def wants_key(self) -> bool:
        return bool(self._keys)

    def admit(self, headers: Headers, client: str | None) -> Principal:
        """``client`` is the address of the other side of the connection; None for a socket of this machine's own."""
        if not self._keys:
            _check_local(headers, client)
            return LOCAL
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("no API key was sent", "send the header Authorization: Bearer KEY")
        principal = self.principal(key.strip())
        if principal is None:
            raise _unauthorized(
                "the API key is not known", "send one of the keys of STEPLADDER_API_KEYS", "invalid_token"
            )
        return principal

    def principal(self, key: str) -> Principal | None:
        """Whom a key stands for. It takes as long for a wrong key as for a right one."""
        digest = _digest(key)
        found = [known.principal for known in self._keys if hmac.compare_digest(known.digest, digest)]
        return found[0] if found else None


def _unauthorized(detail: str, remedy: str, error: str = "") -> ProblemError:
    challenge = 'Bearer realm="stepladder"' + (f', error="{error}"' if error else "")
    return ProblemError(401, "unauthorized", detail, remedy=remedy, headers={"WWW-Authenticate": challenge})


SET_KEYS = "set STEPLADDER_API_KEYS, and the API answers whoever has a key"
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
HOSTS = ("localhost", "127.0.0.1", "::1")


def _check_local(headers: Headers, client: str | None) -> None:
    """Without keys: the connection comes from this machine, and no web page of somebody else's stands behind it."""
    if not _is_loopback(client) or any(name in headers for name in FORWARDED):
        detail = "without API keys the API answers on this machine alone"
        raise ProblemError(403, "not-local", detail, remedy=SET_KEYS)
    # A page whose name was made to point at this machine says its own name here.
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _hostname(hosts[0]) not in HOSTS:
        detail = f"without API keys the API is asked for as {', '.join(HOSTS)}, and not under another name"
        raise ProblemError(403, "wrong-host", detail, remedy=SET_KEYS)
    # A page from elsewhere may send forms here; its browser says where it comes from.
    origin = headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != hosts[0]
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        detail = "without API keys the API answers no web page from elsewhere"
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
