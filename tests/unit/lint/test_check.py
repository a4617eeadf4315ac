"""All errors at once: parts with the wrong shape do not hide the errors of others."""

from __future__ import annotations

from stepladder.lint.check import check_document
from support.machines import KIT

BROKEN = """
name: all-at-once
version: one
bogus: 1
start: nowhere
states:
  ask:
    ask: "{{ inptu.text }}"
    output: {type: object, properties: {action: {enum: [go]}}, required: [action]}
    rules: [{id: r, check: "outptu.action == 'go'", reason: "no"}]
    next: {go: gone}
  misshapen: {ask: Hi, output: {}, nxt: done}
  done: {end: maybe}
"""


def test_every_kind_of_error_is_found_at_once() -> None:
    checked = check_document(BROKEN, KIT)
    assert checked.machine is None
    assert {(finding.code, finding.pointer) for finding in checked.errors} == {
        ("bad_value", "/version"),
        ("unknown_field", "/bogus"),
        ("unknown_state", "/start"),
        ("unknown_name", "/states/ask/ask"),
        ("unknown_name", "/states/ask/rules/0/check"),
        ("unknown_state", "/states/ask/next/go"),
        ("missing_field", "/states/misshapen"),
        ("unknown_field", "/states/misshapen/nxt"),
        ("bad_value", "/states/done/end"),
    }
    assert [finding.line for finding in checked.findings] == sorted(finding.line or 0 for finding in checked.findings)


def test_a_state_with_the_wrong_shape_causes_no_further_errors() -> None:
    text = BROKEN.replace('"{{ inptu.text }}"', '"{{ turns.misshapen.x }}"')
    found = {(finding.code, finding.pointer) for finding in check_document(text, KIT).findings}
    assert ("unknown_name", "/states/ask/ask") not in found


def test_a_document_that_is_not_a_map_has_one_finding() -> None:
    assert [finding.code for finding in check_document("[1]", KIT).findings] == ["not_a_map"]
