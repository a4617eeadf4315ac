"""``stepladder lint``: every mistake at once, with its line and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conftest import BILL

if TYPE_CHECKING:
    from .conftest import Shell

NOWHERE = {"STEPLADDER_DATABASE_URL": "postgresql://127.0.0.1:1/none", "STEPLADDER_ENGINE_URL": "http://127.0.0.1:1/v1"}


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def test_a_good_document_needs_neither_database_nor_engine(shell: Shell) -> None:
    done = shell.run("lint", "bill.yaml", **NOWHERE)
    assert (done.code, done.err) == (0, "")
    assert "bill 1: 5 states, 0 warnings, no errors" in done.out


def test_every_error_is_told_at_once_with_its_place(shell: Shell) -> None:
    bad = (
        BILL.replace("next: approve\n", "next: aprove\n")
        .replace("output.total ==", "output.total = =")
        .replace("tool: look_up", "tool: lookup")
        .replace("{{ tools.look.hours }}", "{{ tools.lok.hours }}")
    )
    shell.write("bad.yaml", bad)
    done = shell.run("lint", "bad.yaml", "--json")
    assert done.code == 1
    assert (done.json["ok"], done.json["document"]) == (False, "bad.yaml")
    found = {(finding["code"], finding["pointer"]): finding for finding in done.json["findings"]}
    assert set(found) == {
        ("unknown_tool", "/states/look/tool"),
        ("unknown_name", "/states/sum/ask"),
        ("bad_expression", "/states/sum/rules/0/check"),
        ("unknown_state", "/states/sum/next"),
    }
    assert found["unknown_state", "/states/sum/next"]["line"] == line_of(bad, "aprove")
    assert "look_up" in found["unknown_tool", "/states/look/tool"]["remedy"]

    people = shell.run("lint", "bad.yaml")
    assert people.code == 1
    assert f"line {line_of(bad, 'aprove')}, /states/sum/next: there is no state `aprove`" in people.out


def test_a_warning_is_no_error(shell: Shell) -> None:
    spoken = """
name: spoken
version: 1
start: only
states:
  only:
    ask: Go or stay?
    output: {type: object, properties: {action: {enum: [go, stay]}}, required: [action]}
    next: {go: done}
  done: {end: succeeded}
"""
    shell.write("spoken.yaml", spoken)
    done = shell.run("lint", "spoken.yaml", "--json")
    assert done.code == 0
    assert [(finding["code"], finding["severity"]) for finding in done.json["findings"]] == [
        ("word_without_edge", "warning")
    ]
