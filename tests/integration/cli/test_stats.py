"""``stepladder stats``: a few lines a workflow, within a hundred columns, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Shell

PRICES = '{"*": {"prompt": 1000, "completion": 2000}, "currency": "EUR"}'
LONG = """
name: a-name-that-is-so-long-that-no-table-of-a-hundred-columns-has-room-for-it-and-its-numbers-too
version: 1
start: sum
states:
  sum:
    ask: "Sum up."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules:
      - id: a-rule-whose-id-is-so-long-that-it-cannot-stand-in-a-table-of-a-hundred-columns-beside-its-numbers
        check: "output.total == 36"
        reason: must be 36
      - {id: polite, check: "output.total < 10", reason: must be small, severity: observe}
    next: done
  done: {end: succeeded}
"""


@pytest.fixture(scope="module")
def spent(shell: Shell) -> Iterator[str]:
    """A workflow whose first answer broke a rule and whose second did not, with prices set."""
    shell.write("long.yaml", LONG)
    shell.ok("run", "long.yaml", STEPLADDER_PRICES=PRICES)
    yield LONG.split()[1]
    assert shell.run("run", "long.yaml", STEPLADDER_PRICES="{}").code == 0  # no price for the tests of others


def test_the_page_fits_100_columns_and_shows_the_figures(shell: Shell, spent: str) -> None:
    done = shell.run("stats", "--workflow", spent)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 100 for line in done.out.splitlines()), done.out
    for said in (
        "1 succeeded, 0 failed, 0 cancelled; 0 live now",
        "1 usable, of 2 answers to 2 attempts",
        "validity 50.0%   truncation 0.0%   zero-token 0.0%   transport 0.0%",
        "first-pass format 100.0%   semantic 50.0%",
        "attempts  a turn: 1 took 2, 0 took 3 or more",
        "polite broken by 2 answers, not rejected",
        "a-rule-whose-id",
        "EUR, retries included",
    ):
        assert said in done.out, done.out


def test_the_json_adds_up(shell: Shell, spent: str) -> None:
    done = shell.run("stats", "--json", "--since", "7d")
    [stats] = [one for one in done.json["workflows"] if one["workflow"] == spent]
    tokens = stats["prompt_tokens"] + stats["completion_tokens"]
    assert stats["tokens_per_usable"] == tokens
    assert stats["cost"] == pytest.approx((stats["prompt_tokens"] + 2 * stats["completion_tokens"]) / 1000)
    assert sum(share["cost"] for share in stats["outcomes"]) == pytest.approx(stats["cost"])
    assert [share["outcome"] for share in stats["outcomes"]] == ["valid", "semantic"]
    assert done.json["since"].endswith("Z")


def test_without_figures_a_hint_goes_to_standard_error(shell: Shell) -> None:
    done = shell.run("stats", "--since", "0s", "--workflow", "nobody's")
    assert (done.code, done.out) == (0, "")
    assert "look further back" in done.err
    assert shell.run("stats", "--since", "0s", "--workflow", "nobody's", "--json").json["workflows"] == []


@pytest.mark.parametrize("since", ["yesterday", "24"])
def test_a_bad_time_is_refused_with_examples(shell: Shell, since: str) -> None:
    assert "--since 24h" in shell.refused("stats", "--since", since)


def test_the_api_writes_prices_and_other_processes_keep_them(shell: Shell) -> None:
    prices = '{"a-model-that-nobody-asks-for": {"prompt": 0.15, "completion": 0.6}}'

    def held() -> list[tuple[float, float]]:
        query = "SELECT prompt::float8, completion::float8 FROM prices WHERE until IS NULL AND model LIKE 'a-model%%'"
        return shell.rows(query)

    with shell.start("api", "--port", "0", STEPLADDER_PRICES=prices):
        wait_until(lambda: held() == [(0.15, 0.6)], 30, what="the prices are written")
    assert shell.run("run", "bill.yaml", "--input", '{"team": "x"}').code == 0
    assert held() == [(0.15, 0.6)]
