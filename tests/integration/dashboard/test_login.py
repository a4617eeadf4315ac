"""Logging in with a key; scopes hold on pages too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from stepladder.api.access import Principal, parse_keys
from stepladder.dashboard.sessions import LIFETIME_S, Sessions
from support.site import RIGHT, USAGE

from .conftest import token_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conftest import Visit, Visitor

KEYS = parse_keys(
    json.dumps(
        [
            {"name": "reader", "key": "r-key", "scopes": ["jobs:read"]},
            {"name": "writer", "key": "w-key", "scopes": ["jobs:read", "jobs:write"]},
            {"name": "signaller", "key": "s-key", "scopes": ["jobs:read", "signals:write"]},
            {"name": "boss", "key": "b-key", "scopes": ["admin"]},
            {"name": "submitter", "key": "x-key", "scopes": ["jobs:write"]},
        ]
    )
)


@pytest_asyncio.fixture(loop_scope="module")
async def keyed(visit: Visit) -> Visitor:
    return await visit(keys=KEYS)


async def log_in(visitor: Visitor, key: str, following: str = "/", headers: Mapping[str, str] | None = None) -> str:
    """Where the login redirects to. The cookie is kept."""
    page = await visitor.page("/login", headers=headers)
    fields = {"token": token_of(page), "key": key, "next": following}
    answer = await visitor.client.post("/login", data=fields, headers=headers)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def test_no_page_is_shown_without_a_key(keyed: Visitor) -> None:
    job = await keyed.site.submit()
    answer = await keyed.client.get(f"/jobs/{job}?a=b")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/login?next=%2Fjobs%2F{job}%3Fa%3Db"
    assert (await keyed.client.get("/")).headers["location"] == "/login"
    for path in (f"/jobs/{job}/part", f"/jobs/{job}/follow"):
        assert (await keyed.client.get(path)).status_code == 401
    for path in (f"/jobs/{job}/pause", "/logout"):
        assert (await keyed.client.post(path, data={"token": ""})).status_code == 401
    bearer = await keyed.client.get("/v1/jobs", headers={"Authorization": "Bearer r-key"})
    assert bearer.status_code == 200, "the API goes on as ever"


async def test_a_key_opens_the_pages_until_logging_out(keyed: Visitor) -> None:
    job = await keyed.site.submit()
    assert await log_in(keyed, "b-key", f"/jobs/{job}") == f"/jobs/{job}"
    page = await keyed.job(job)
    assert "<span>boss</span>" in page
    assert (await keyed.client.get("/login")).headers["location"] == "/"
    assert (await keyed.post(f"/jobs/{job}/pause", page)).status_code == 303
    assert (await keyed.post("/logout", page)).headers["location"] == "/login"
    assert (await keyed.client.get("/")).headers["location"] == "/login"


async def test_the_cookie_is_protected_and_not_the_key(keyed: Visitor) -> None:
    for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        login = await keyed.client.get("/login", headers=headers)
        held = {"Cookie": login.headers["set-cookie"].partition(";")[0]}  # a client of http does not send a secure one
        fields = {"token": token_of(login.text), "key": "b-key"}
        answer = await keyed.client.post("/login", data=fields, headers=headers | held)
        cookie = answer.headers["set-cookie"]
        assert "b-key" not in cookie
        assert answer.headers["set-cookie"] != login.headers["set-cookie"], "a session begins anew with its login"
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert ("Secure" in cookie) is secure
        keyed.client.cookies.clear()


async def test_a_wrong_key_is_rejected(keyed: Visitor) -> None:
    page = await keyed.page("/login")
    for key in ("wrong", "", "ä" * 500):
        answer = await keyed.post("/login", page, key=key, next="/")
        assert answer.status_code == 403
        assert "Unknown key" in answer.text
    assert (await keyed.client.get("/")).status_code == 303


async def test_a_login_needs_the_token_of_its_own_page(keyed: Visitor, visit: Visit) -> None:
    other = await visit(keys=KEYS)
    theirs = await other.page("/login")
    await keyed.page("/login")
    answer = await keyed.post("/login", theirs, key="b-key")
    assert answer.status_code == 403
    assert "out of date" in answer.text


@pytest.mark.parametrize("following", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nX: y", ""])
async def test_a_login_redirects_to_no_other_site(keyed: Visitor, following: str) -> None:
    assert await log_in(keyed, "b-key", following) == "/"


async def test_a_key_sees_and_uses_only_the_buttons_of_its_scopes(keyed: Visitor, visit: Visit) -> None:
    job = await keyed.site.run(USAGE, RIGHT)
    for key, pausing, signalling in (("r-key", False, False), ("w-key", True, False), ("s-key", False, True)):
        one = await visit(keys=KEYS)
        await log_in(one, key)
        page = await one.job(job)
        assert (f"/jobs/{job}/pause" in page, f"/jobs/{job}/cancel" in page) == (pausing, pausing)
        assert (f"/jobs/{job}/signal" in page) is signalling
        fields = {"name": "approval", "action": "dance", "payload": "{}"}
        expected = 422 if signalling else 403
        assert (await one.post(f"/jobs/{job}/signal", page, **fields)).status_code == expected
        answers = [await one.post(f"/jobs/{job}/{path}", page) for path in ("pause", "unpause", "cancel")]
        assert [answer.status_code for answer in answers] == [303 if pausing else 403] * 3
        if not pausing:
            assert "lacks the scope jobs:write" in answers[0].text


async def test_a_reader_cannot_replay_or_pause_a_workflow(keyed: Visitor) -> None:
    job = await keyed.site.run(USAGE, RIGHT)
    await log_in(keyed, "r-key")
    page = await keyed.job(job)
    assert f"/jobs/{job}/replays" not in page
    assert "/pause" not in await keyed.page("/workflows")
    for path in (f"/jobs/{job}/replays", "/workflows/usage-bill/pause"):
        assert (await keyed.post(path, page, mode="fork")).status_code == 403


async def test_a_key_without_the_read_scope_sees_why(keyed: Visitor) -> None:
    await log_in(keyed, "x-key")
    page = await keyed.page("/", 403)
    assert "lacks the scope jobs:read" in page
    assert (await keyed.post("/logout", page)).status_code == 303


async def test_a_forged_or_expired_cookie_is_rejected() -> None:
    time = 1000.0
    sessions, others = Sessions(lambda: time), Sessions(lambda: time)
    session = sessions.begin(Principal("reader", frozenset(["jobs:read"])))
    cookie = sessions.seal(session)
    assert sessions.open(cookie) == session
    body, _, signature = cookie.partition(".")
    boss = others.seal(others.begin(Principal("boss", None)))
    mixed = f"{boss.partition('.')[0]}.{signature}"
    for forged in (None, "", ".", boss, mixed, body, f"{body}.", f"{body}.{'ä' * 64}"):
        assert sessions.open(forged) is None
    assert session.token != sessions.begin(session.principal).token
    time += LIFETIME_S
    assert sessions.open(cookie) is None
