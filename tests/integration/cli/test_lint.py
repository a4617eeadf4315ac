"""``stepladder lint``: every error at once, with its line and remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .conftest import BILL

if TYPE_CHECKING:
    from .conftest import Shell

NOWHERE = {"STEPLADDER_DATABASE_URL": "postgresql://127.0.0.1:1/none", "STEPLADDER_ENGINE_URL": "http://127.0.0.1:1/v1"}
SPOKEN = """
name: spoken
version: 1
start: only
states:
  only:
    ask: Go or stay?
    output:
      type: object
      properties: {action: {enum: [go, stay]}}
      required: [action]
      additionalProperties: false
    next: {go: done}
  done: {end: succeeded}
"""
PRICED = """
name: priced
version: 1
start: only
states:
  only:
    ask: What does it cost?
    output:
      type: object
      properties:
        price: {type: number, minimum: 0, maximum: 10, multipleOf: 0.01}
        code: {type: string, pattern: "^[A-Z]+$", maxLength: 9}
      required: [price, code]
      additionalProperties: false
    next: done
  done: {end: succeeded}
"""


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def test_a_good_document_needs_neither_database_nor_engine(shell: Shell) -> None:
    done = shell.run("lint", "bill.yaml", **NOWHERE)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "bill 1: 5 states, 0 warnings, no errors"


def test_every_error_is_reported_with_its_place(shell: Shell) -> None:
    bad = (
        BILL.replace("next: approve\n", "next: aprove\n")
        .replace("output.total ==", "output.total = =")
        .replace("tool: look_up", "tool: lookup")
    )
    shell.write("bad.yaml", bad)
    done = shell.run("lint", "bad.yaml", "--json")
    assert done.code == 1
    assert (done.json["ok"], done.json["document"]) == (False, "bad.yaml")
    found = {(finding["code"], finding["pointer"]): finding for finding in done.json["findings"]}
    assert set(found) == {
        ("unknown_tool", "/states/look/tool"),
        ("bad_expression", "/states/sum/rules/0/check"),
        ("unknown_state", "/states/sum/next"),
    }
    assert found["unknown_state", "/states/sum/next"]["line"] == line_of(bad, "aprove")
    assert "look_up" in found["unknown_tool", "/states/look/tool"]["remedy"]

    people = shell.run("lint", "bad.yaml")
    assert people.code == 1
    assert f"error unknown_state, line {line_of(bad, 'aprove')}, column 11: /states/sum/next" in people.out
    assert "bad.yaml: 0 warnings, 3 errors" in people.out.splitlines()


def test_a_warning_is_an_error_only_if_strict(shell: Shell) -> None:
    shell.write("spoken.yaml", SPOKEN)
    done = shell.ok("lint", "spoken.yaml", "--json")
    assert [(finding["code"], finding["severity"]) for finding in done.json["findings"]] == [
        ("word_without_edge", "warning")
    ]
    assert shell.run("lint", "spoken.yaml", "--strict").code == 1
    assert shell.run("lint", "bill.yaml", "--strict").code == 0


def test_hints_are_shown_with_all(shell: Shell) -> None:
    assert shell.run("lint", "bill.yaml", "--json").json["counts"] == {"error": 0, "warning": 0, "hint": 0}
    done = shell.ok("lint", "bill.yaml", "--json", "--all", "--strict")
    assert {finding["severity"] for finding in done.json["findings"]} == {"hint"}


def test_a_backend_is_checked_for_what_it_refuses_and_ignores(shell: Shell) -> None:
    shell.write("priced.yaml", PRICED)
    done = shell.run("lint", "priced.yaml", "--backend", "xgrammar", "--engine-version", "0.32.0", "--json")
    assert done.code == 1
    assert done.json["engine"] == "xgrammar in vLLM 0.32.0"
    assert [(finding["code"], finding["pointer"].rpartition("/")[2]) for finding in done.json["findings"]] == [
        ("engine_refuses", "multipleOf"),
        ("engine_refuses", "maxLength"),
    ]
    assert shell.run("lint", "priced.yaml", "--backend", "guidance", "--strict").code == 0
    ignored = shell.run("lint", "priced.yaml", "--backend", "llamacpp")
    assert (ignored.code, ignored.out.count("engine_ignores")) == (0, 4)
    assert shell.run("lint", "priced.yaml", "--strict").code == 0


def test_a_newer_engine_is_assumed_to_be_like_the_newest_known(shell: Shell) -> None:
    done = shell.ok("lint", "bill.yaml", "--backend", "xgrammar", "--engine-version", "0.99")
    assert "xgrammar in vLLM 0.99.0 was not measured" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--engine-version", "0.32.0"), "add --backend, one of xgrammar, guidance, llamacpp"),
        (("--backend", "outlines"), "'xgrammar', 'guidance', 'llamacpp'"),
        (("gone.yaml",), "gone.yaml cannot be read"),
    ],
)
def test_bad_usage_is_explained(shell: Shell, words: tuple[str, ...], told: str) -> None:
    assert told in shell.refused("lint", "bill.yaml", *words)


def test_several_documents_have_one_report_and_one_code(shell: Shell) -> None:
    shell.write("spoken.yaml", SPOKEN)
    shell.write("broken.yaml", "name: broken\n")
    done = shell.run("lint", "spoken.yaml", "bill.yaml", "broken.yaml", "--json")
    assert done.code == 1
    assert (done.json["document"], done.json["documents"]) == (None, ["spoken.yaml", "bill.yaml", "broken.yaml"])
    assert next(finding["document"] for finding in done.json["findings"]) == "spoken.yaml"
    fields = {"document", "code", "severity", "pointer", "line", "column", "message", "remedy"}
    assert all(set(finding) == fields for finding in done.json["findings"])
    people = shell.run("lint", "spoken.yaml", "bill.yaml", "broken.yaml").out
    assert [line for line in people.splitlines() if not line.startswith((" ", "Token estimate skipped"))] == [
        "spoken.yaml",
        "spoken 1: 2 states, 1 warning, no errors",
        "bill 1: 5 states, 0 warnings, no errors",
        "broken.yaml",
        f"broken.yaml: 0 warnings, {done.json['counts']['error']} errors",
    ]


def test_the_report_fits_100_columns(shell: Shell) -> None:
    shell.write(
        "long.yaml", PRICED.replace("price", "the_price_of_the_whole_thing_" * 3).replace("maxLength", "maxlen")
    )
    lines = shell.run("lint", "long.yaml", "--all", "--backend", "xgrammar").out.splitlines()
    assert len(lines) > 8
    assert [line for line in lines if len(line) > 100 and " " in line.strip()] == []


def test_publish_shows_three_warnings_and_where_to_find_the_rest(shell: Shell) -> None:
    loose = PRICED.replace(", minimum: 0, maximum: 10, multipleOf: 0.01", "").replace(", maxLength: 9", "")
    loose = (
        loose.replace("      additionalProperties: false\n", "")
        .replace('"^[A-Z]+$"', '"[A-Z]+"')
        .replace("priced", "loose")
    )
    shell.write("loose.yaml", loose)
    done = shell.ok("publish", "loose.yaml")
    assert done.err.count("warning /") + done.err.count("warning line") == 3
    assert "4 warnings in loose.yaml: stepladder lint loose.yaml" in done.err
    assert shell.run("publish", "loose.yaml", "--json").json["warnings"][0]["severity"] == "warning"
