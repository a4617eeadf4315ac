from __future__ import annotations

import json
from typing import Any

import pytest

from stepladder.api.access import Access, Scope, parse_keys
from stepladder.schemas.errors import BadInputError

SECRET = "the-secret-word"


def key(**fields: Any) -> dict[str, Any]:
    return {"name": "ci", "key": SECRET, "scopes": ["jobs:read"]} | fields


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        "text",
        [key(scopes="jobs:read")],
        [key(key="")],
        [key(key=5)],
        [key(name="")],
        [key(scope=["jobs:read"])],
        [{"name": "ci", "key": SECRET}],
        [key(), key(key="another")],
        [key(), key(name="another")],
        [key(max_in_flight=-1)],
        [key(max_in_flight="3")],
    ],
)
def test_invalid_keys_are_refused_and_not_quoted(value: Any) -> None:
    with pytest.raises(BadInputError, match="STEPLADDER_API_KEYS") as caught:
        parse_keys(json.dumps(value))
    assert SECRET not in f"{caught.value} {caught.value.remedy}"
    assert '"scopes"' in caught.value.remedy


@pytest.mark.parametrize("text", ["", f"[{SECRET}]", f'[{{"key": "{SECRET}", "key": 1}}]', "\udcff"])
def test_text_that_is_not_json_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_keys(text)
    assert SECRET not in f"{caught.value} {caught.value.__cause__}"


def test_a_key_matches_exactly_and_is_never_shown() -> None:
    keys = parse_keys(json.dumps([key(), key(name="umlaut", key="schlüssel")]))
    assert SECRET not in repr(keys)
    access = Access(keys)
    found = access.principal(SECRET)
    assert found is not None
    assert (found.name, found.scopes) == ("ci", frozenset({"jobs:read"}))
    assert access.principal("schlüssel") is not None
    for wrong in ("", SECRET[:-1], SECRET + " ", SECRET.upper(), "\udcff"):
        assert access.principal(wrong) is None


def test_a_key_may_limit_the_jobs_in_flight_to_0() -> None:
    keys = parse_keys(json.dumps([key(), key(name="b", key="b", max_in_flight=0)]))
    assert [known.max_in_flight for known in keys] == [None, 0]


def test_admin_opens_every_route_and_a_star_every_tool_as_well() -> None:
    wanted = {"a": ["admin"], "b": ["*"], "c": []}
    keys = parse_keys(json.dumps([key(name=name, key=name, scopes=scopes) for name, scopes in wanted.items()]))
    admin, star, none = (known.principal for known in keys)
    assert all(admin.may(scope) and star.may(scope) and not none.may(scope) for scope in Scope)
    assert (admin.scopes, star.scopes) == (frozenset({"admin"}), None)
