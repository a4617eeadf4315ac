from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.canonical import EXACT_INTEGER, canonical, content_hash, exact_hash, identity

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-EXACT_INTEGER, EXACT_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\u00e9\U0001f600\ufb33"), inner)
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shuffled(item) for name, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_the_spelling_is_rfc_8785s_and_knows_no_order_of_keys(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)
    assert canonical(shuffled(value)) == canonical(value)
    assert json.loads(canonical(value), parse_int=float) == value


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ([0], [-0.0]), ({"a": 1e2}, {"a": 100}), ((1, 2), [1, 2])])
def test_equal_json_has_one_identity(one: Any, other: Any) -> None:
    assert content_hash(one) == content_hash(other)
    assert exact_hash(one) == exact_hash(other)
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), ("1", 1), (None, "null"), ([], {}), ([1, 2], [2, 1])]
)
def test_different_json_has_different_identities(one: Any, other: Any) -> None:
    assert content_hash(one) != content_hash(other)
    assert exact_hash(one) != exact_hash(other)
    assert identity(one) != identity(other)


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**22, 10**308 - 1])
def test_an_integer_beyond_the_doubles_is_spelled_as_its_double(number: int) -> None:
    assert canonical(number) == rfc8785.dumps(float(number))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, "half \ud83d"])
def test_what_is_no_json_has_no_spelling(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical(value)


def test_the_hash_is_sha_256_in_hexadecimal() -> None:
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_large_integers_that_share_a_canonical_spelling_are_told_apart_exactly() -> None:
    one, other = 2**53 + 1, 2**53
    assert content_hash([one]) == content_hash([other])
    assert exact_hash([one]) != exact_hash([other])


def test_an_exact_hash_does_not_depend_on_the_order_of_names() -> None:
    assert exact_hash({"a": 1, "b": [None]}) == exact_hash({"b": [None], "a": 1})
