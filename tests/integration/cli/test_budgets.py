"""``stepladder lint`` with an engine to ask: what each turn's answers may take, and whether its budget holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.embedded import llama
from stepladder.embedded.model import ensure_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Shell

NOTES = """
name: notes
version: 1
start: short
states:
  short:
    ask: Say something short.
    output:
      {type: object, properties: {text: {type: string, maxLength: 400}}, required: [text], additionalProperties: false}
    max_completion_tokens: 20
    next: long
  long:
    ask: Say something.
    output: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    next: done
  done: {end: succeeded}
"""


@pytest.fixture(scope="module")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama.running(ensure_model(), tmp_path_factory.mktemp("llama") / "llama.log") as url:
        yield url


@pytest.fixture
def notes(shell: Shell) -> str:
    shell.write("notes.yaml", NOTES)
    return "notes.yaml"


def test_each_turn_is_estimated_by_the_engines_tokenizer(shell: Shell, notes: str, engine_url: str) -> None:
    done = shell.ok("lint", notes, "--json", "--all", "--engine-url", engine_url)
    budgets = done.json["budgets"]
    assert (budgets["tokenizer"], budgets["why_not"]) == (llama.ALIAS, None)
    short, long = budgets["turns"]
    assert (short["state"], short["max_completion_tokens"], short["suggested"]) == ("short", 20, 2 * short["largest"])
    assert 20 < short["largest"] < 400, "tokens, and no characters"
    assert (long["largest"], long["suggested"]) == (None, None)
    assert long["endless"] == [{"pointer": "/text", "reason": "it has no `maxLength`"}]
    found = {finding["code"]: finding for finding in done.json["findings"] if finding["code"].startswith("budget")}
    assert set(found) == {"budget_too_small", "budget_unbounded"}
    assert found["budget_too_small"]["line"] == NOTES.splitlines().index("    max_completion_tokens: 20") + 1
    assert f"max_completion_tokens: {short['suggested']}" in found["budget_too_small"]["remedy"]


def test_a_budget_that_is_too_small_is_a_warning_in_the_table(shell: Shell, notes: str, engine_url: str) -> None:
    done = shell.ok("lint", notes, STEPLADDER_ENGINE_URL=engine_url)
    assert "budget_too_small" in done.out
    assert "budget_unbounded" not in done.out, "a hint is shown with --all"
    rows = [line.split() for line in done.out.splitlines()]
    [short] = [row for row in rows if row[:1] == ["short"]]
    assert (len(short), short[2]) == (4, "20")
    assert any(row[:1] == ["long"] and "unbounded:" in row for row in rows)
    assert max(map(len, done.out.splitlines())) <= 100
    assert shell.run("lint", notes, "--strict", STEPLADDER_ENGINE_URL=engine_url).code == 1


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"STEPLADDER_ENGINE_URL": None}, "no engine is known"),
        ({"STEPLADDER_ENGINE_URL": "http://127.0.0.1:1/v1"}, "No engine answers at http://127.0.0.1:1/v1"),
        ({"STEPLADDER_ENGINE_API_KEY": "wrong"}, "needs a key"),
        ({}, "has no tokenizer to ask"),
        ({"STEPLADDER_MODEL": "other"}, "does not serve the model other"),
    ],
    ids=["none", "unreachable", "key", "no tokenizer", "model"],
)
def test_without_a_tokenizer_the_estimate_is_skipped(
    shell: Shell, notes: str, variables: dict[str, str | None], why: str
) -> None:
    done = shell.run("lint", notes, "--strict", **variables)
    assert "budget_too_small" not in done.out
    [line] = [line for line in done.out.splitlines() if "Token estimate skipped" in line]
    assert why in line
    assert done.err == ""
    as_json = shell.run("lint", notes, "--json", **variables).json["budgets"]
    assert (as_json["tokenizer"], as_json["turns"]) == (None, [])
    assert why in as_json["why_not"]
