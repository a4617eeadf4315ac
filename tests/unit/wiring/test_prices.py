"""Prices as they are set: each mistake is named with its place, and no price is guessed."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.prices import Price, Prices
from stepladder.wiring.prices import parse_prices
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

SEVEN = {"prompt": 0.15, "completion": 0.6}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("STEPLADDER_PRICES", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_prices_are_exact_and_the_environment_wins(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().prices is None
    text = '[prices]\ncurrency = "USD"\n"*" = {prompt = 0.1, completion = 2}\n'
    (empty_folder / "stepladder.toml").write_text(text)
    other = Prices({"*": Price(Decimal("0.1"), Decimal(2))}, "USD")
    assert load_settings().prices == other
    monkeypatch.setenv("STEPLADDER_PRICES", '{"org/seven": {"prompt": 0.15, "completion": 0.6}}')
    assert load_settings().prices == Prices({"org/seven": Price(Decimal("0.15"), Decimal("0.6"))})
    monkeypatch.setenv("STEPLADDER_PRICES", "")
    assert load_settings().prices == other
    monkeypatch.setenv("STEPLADDER_PRICES", "{}")
    assert load_settings().prices == Prices({})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nonsense", "not JSON"),
        ('{"a": {"prompt": 1, "completion": 1}, "a": {"prompt": 2, "completion": 2}}', "duplicate_key"),
        ('{"a": {"prompt": NaN, "completion": 1}}', "non_finite_number"),
        ([SEVEN], "must be an object"),
        ({"org/a": {"prompt": -0.1, "completion": 1}}, "/org~1a/prompt in it must be a number from 0"),
        ({"a": {"prompt": 1, "completion": True}}, "/a/completion in it must be a number"),
        ({"a": {"prompt": 1, "completion": "0.6"}}, "/a/completion in it must be a number"),
        ({"a": {"prompt": 1, "completion": float("inf")}}, "/a/completion in it must be a number"),
        ({"a": {"prompt": 1}}, "/a in it lacks the price of completion"),
        ({"a": {**SEVEN, "cached": 1}}, "/a/cached in it is not a price"),
        ({"a": 0.15}, "/a in it must be an object"),
        ({"": SEVEN}, "is not a model name"),
        ({"a\0b": SEVEN}, "is not a model name"),
        ({"currency": "EUR"}, "names a currency but no model"),
        ({"currency": 5, "a": SEVEN}, "/currency in it must be a word"),
        ({"currency": "E\nUR", "a": SEVEN}, "/currency in it must be a word"),
    ],
)
def test_a_bad_price_is_named_with_its_place(given: Any, said: str) -> None:
    with pytest.raises(BadInputError, match="STEPLADDER_PRICES cannot be used") as refused:
        parse_prices(given)
    assert said in str(refused.value)
    assert "stepladder.toml" in refused.value.remedy


def test_a_bad_setting_is_reported_when_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_PRICES", '{"a": {}}')
    with pytest.raises(BadInputError, match="/a in it lacks the price of prompt"):
        load_settings()
