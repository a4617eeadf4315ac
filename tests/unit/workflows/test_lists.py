from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.validation.semantic import broken
from stepladder.workflows.lists import names_in, rules_in
from stepladder.workflows.load import Loaded, load_document
from stepladder.workflows.names import names_of
from stepladder.workflows.transition import Ask, Finished
from support.machines import Play, codes_of, document, findings_of, play, the

ENDS = """
done: {end: succeeded, result: lists.lines}
bad: {end: failed, result: lists.lines}
"""
N = '{type: object, properties: {n: {type: number}, m: {type: [number, "null"]}}, required: [n]}'
CLOSED = N.replace("required", "additionalProperties: false, required")
SAID = "{type: object, properties: {action: {enum: [more, stop]}, n: {type: number}}, required: [action]}"
OPTIONAL = SAID.replace(", required: [action]", "")


def lines(each: str, *, more: str = "", edges: str = "done", output: str = N, head: str = "", fails: str = "") -> str:
    """A machine of one list; ``fails`` is what else than ``attempts_exhausted`` leads to ``bad``."""
    item = "{{ each.item }}" if "over" in each else "-"
    turn = f"""
lines:
  ask: "{{{{ each.index }}}}/{{{{ each.count }}}} {item} {{{{ each.elements }}}}"
  output: {output}
  each: {each}
  next: {edges}
  on_failure: {{refused: bad{fails}}}
"""
    return document(turn + more + ENDS, head)


OVER, COUNT = "{over: input.items, at_most: 3}", "{count: input.items, at_most: 3}"


def question(it: Play) -> str:
    return the(Ask, it.steps[-1]).turn.question.splitlines()[0]


def test_the_turns_of_a_list_see_their_item_and_what_was_built_before_them() -> None:
    it = play(lines(OVER), value={"items": ["a", {"b": 1}]}).begun()
    assert question(it) == "1/2 a []"
    it.says({"n": 1})
    assert question(it) == '2/2 {"b": 1} [{"n": 1}]'
    the(Finished, it.says({"n": 2}))
    assert it.job.result == [{"n": 1}, {"n": 2}]
    assert it.path() == [("always", "done")]


def test_one_turn_that_fails_is_asked_again_and_no_other() -> None:
    it = play(lines(OVER), value={"items": [1, 2]}).begun()
    it.says({"n": 1})
    step = it.fails(Outcome.SEMANTIC, "unique", content=b"{}")
    assert (the(Ask, step).turn.ordinal, the(Ask, step).attempt.ordinal) == (2, 2)


def test_a_list_that_was_left_half_built_keeps_what_it_has_and_the_next_begins_anew() -> None:
    again = "  retry: {attempts: 1}\n  max_visits: 2\n"
    edges = "{always: done, exhausted: bad}"
    it = play(
        lines(OVER, more=again, edges=edges, fails=", attempts_exhausted: lines"), value={"items": [1, 2]}
    ).begun()
    it.says({"n": 1})
    it.fails(Outcome.SEMANTIC, content=b"{}")
    assert question(it) == "1/2 1 []"
    it.says({"n": 5})
    it.fails(Outcome.SEMANTIC, content=b"{}")
    assert (it.job.status, it.job.result) == (JobStatus.FAILED, [{"n": 5}])
    assert it.path()[-1] == ("exhausted", "bad"), "two runs of the list are two visits, however many turns they took"


@pytest.mark.parametrize("count", ["2", "2.0"])
def test_a_count_says_how_many(count: str) -> None:
    it = play(lines(f'{{count: "{count}", at_most: 3}}')).begun()
    assert question(it) == "1/2 - []"
    it.says({"n": 1})
    the(Finished, it.says({"n": 1}))


@pytest.mark.parametrize(
    ("each", "items", "detail"),
    [
        (OVER, [1, 2, 3, 4], "`each.over` of state lines gave 4 items; `each.at_most` is 3"),
        (OVER, {"a": 1}, "`each.over` of state lines gave {'a': 1}, which is not a list"),
        (OVER, "abc", "`each.over` of state lines gave abc, which is not a list"),
        ("{over: input.other, at_most: 3}", [], "`each.over` of state lines: input.other is not known"),
        (COUNT, 4, "`each.count` of state lines gave 4; `each.at_most` is 3"),
        (COUNT, -1, "`each.count` of state lines gave -1, and not a number of elements"),
        (COUNT, 1.5, "`each.count` of state lines gave 1.5, and not a number of elements"),
        (COUNT, True, "`each.count` of state lines gave True, and not a number of elements"),
    ],
)
def test_what_measures_no_list_fails_the_state_before_its_first_turn(each: str, items: Any, detail: str) -> None:
    it = play(lines(each), value={"items": items})
    the(Finished, it.claim())
    assert (it.job.failure, it.job.turn_count) == (Failure.EXPRESSION_ERROR, 0)
    assert str(it.job.failure_detail).startswith(detail.split(" is not known")[0])
    routed = play(lines(each, fails=", expression_error: bad"), value={"items": items}).begun()
    assert routed.path() == [("expression_error", "bad")]


@pytest.mark.parametrize("each", ["{over: input.items, at_most: 3}", "{count: '0', at_most: 3}"])
def test_a_list_of_nothing_is_complete_at_once(each: str) -> None:
    it = play(lines(each), value={"items": []})
    the(Finished, it.claim())
    assert (it.job.status, it.job.result, it.job.turn_count) == (JobStatus.SUCCEEDED, [], 0)


def test_the_models_word_ends_the_list_and_is_no_element() -> None:
    it = play(lines("{until: stop, at_most: 2}", edges="{stop: done, exhausted: bad}", output=SAID)).begun()
    assert question(it) == "1/null - []"
    it.says({"action": "more", "n": 1})
    the(Finished, it.says({"action": "stop"}))
    assert it.job.result == [{"action": "more", "n": 1}]
    it = play(lines("{until: stop, at_most: 2}", edges="{stop: done, exhausted: bad}", output=SAID)).begun()
    it.says({"action": "more", "n": 1})
    the(Finished, it.says({"action": "more", "n": 2}))
    assert it.path() == [("exhausted", "bad")]


def test_max_turns_counts_every_element() -> None:
    it = play(lines(OVER, head="limits: {max_turns: 2}"), value={"items": [1, 2, 3]}).begun()
    it.says({"n": 1})
    the(Finished, it.says({"n": 2}))
    assert it.job.failure is Failure.MAX_TURNS


def reasons(it: Play, output: Any) -> list[tuple[str, str, str]]:
    state = it.machine.ask("lines")
    found = broken(rules_in(it.job, state), output, names_in(it.job, state))
    return [(one.source, one.pointer, one.reason) for one in found]


def test_elements_are_told_apart_by_their_values_and_what_is_missing_by_nothing() -> None:
    it = play(lines("{over: input.items, at_most: 9, unique: [/n, /m]}"), value={"items": [0] * 9}).begun()
    it.says({"n": 36, "m": None})
    it.says({"n": 2})
    assert reasons(it, {"n": 36.0, "m": 1}) == [("unique", "/n", "must differ from element 1")]
    assert reasons(it, {"n": 3, "m": None}) == []
    assert reasons(it, {"n": 3}) == []
    it.says({"n": 3, "m": 7})
    assert reasons(it, {"n": 2, "m": 7}) == [
        ("unique", "/n", "must differ from element 2"),
        ("unique", "/m", "must differ from element 3"),
    ]


def test_the_whole_element_may_have_to_be_another_and_the_word_that_ends_is_none() -> None:
    each = "{until: stop, at_most: 9, unique: ['']}"
    it = play(lines(each, edges="{stop: done, exhausted: bad}", output=SAID)).begun()
    it.says({"action": "more", "n": 1})
    assert reasons(it, {"action": "more", "n": 1.0})[0][2] == "must differ from element 1"
    assert reasons(it, {"action": "more", "n": 2}) == []
    assert reasons(it, {"action": "stop"}) == []


@given(st.lists(st.integers(0, 5), max_size=12), st.booleans())
def test_a_list_is_what_was_accepted_in_order_and_never_a_circle(values: list[int], ends: bool) -> None:
    each, edges = "{until: stop, at_most: 12}", "{stop: done, exhausted: done}"
    it = play(
        lines(each, edges=edges, output=SAID, head="limits: {max_turns: 99, loop: {repeats: 1, stale: 1}}")
    ).begun()
    for number, value in enumerate(values, 1):
        it.says({"action": "more", "n": value})
        assert names_of(it.job)["lists"] == {"lines": [{"action": "more", "n": one} for one in values[:number]]}
    if ends and len(values) < 12:
        it.says({"action": "stop"})
    if it.job.status.final:
        assert it.job.result == [{"action": "more", "n": one} for one in values]
    else:
        assert question(it).startswith(f"{len(values) + 1}/null")


def test_the_same_list_over_and_over_is_a_circle() -> None:
    more = f"again:\n  ask: Again?\n  output: {SAID}\n  next: {{more: lines, stop: done}}\n"
    it = play(lines(OVER, edges="again", more=more, head="limits: {max_turns: 99}"), value={"items": [1, 2, 3]}).begun()
    for _ in range(20):
        if it.job.status.final:
            break
        it.says({"action": "more"} if it.job.state == "again" else {"n": 1})
    assert it.job.failure is Failure.LOOP
    assert it.job.turn_count > 8, "the list once more is no circle yet"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (lines("{over: 'input.', at_most: 3}"), "bad_expression", "each/over"),
        (lines("{over: each.item, at_most: 3}"), "unknown_name", "each/over"),
        (lines("{over: input.items, at_most: 3, unique: [/n, /x]}", output=CLOSED), "unknown_member", "each/unique/1"),
        (lines(OVER, edges="{always: done, done: bad}"), "impossible_word", "next/done"),
        (lines(OVER, edges="{exhausted: bad}"), "no_edge", "next"),
        (lines("{until: stop, at_most: 3}", output=SAID, edges="{stop: done}"), "no_edge", "next"),
        (lines("{until: stop, at_most: 3}", output=SAID), "no_edge", "next"),
        (lines("{until: enough, at_most: 3}", output=SAID, edges="{enough: done, exhausted: bad}"),
         "impossible_word", "each/until"),
        (lines("{until: stop, at_most: 3}", edges="{stop: done, exhausted: bad}"), "impossible_word", "each/until"),
        (lines("{until: timeout, at_most: 3}", output=SAID, edges="{timeout: done, exhausted: bad}"),
         "reserved_action", "each/until"),
        (lines("{until: stop, at_most: 3}", output=OPTIONAL, edges="{stop: done, exhausted: bad}"),
         "optional_action", "output"),
        (lines(OVER, more="  rules: [{id: r, check: each.nothing == 1, reason: no}]\n"),
         "unknown_name", "rules/0/check"),
        (lines("{count: '1', at_most: 3}", more="  rules: [{id: r, check: each.item == 1, reason: no}]\n"),
         "unknown_name", "rules/0/check"),
        (lines("{over: input.items, at_most: 3, unique: [/n]}", more="  rules: [{id: unique, call: iban}]\n"),
         "rule_twice", "rules"),
        (lines(OVER, more="  tools: [look]\n"), "each_with_tools", "tools"),
        (document("a: {ask: '{{ each.index }}', output: {type: object}, next: done}\ndone: {end: succeeded}"),
         "unknown_name", "../a/ask"),
        (document("a: {ask: Hi, output: {type: object}, next: done}\ndone: {end: succeeded, result: lists.a}"),
         "unknown_name", "../done/result"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_list_is_found(text: str, code: str, place: str) -> None:
    pointer = f"/states/lines/{place}".replace("lines/../", "")
    assert (code, pointer) in codes_of(text)


@pytest.mark.parametrize(
    "each",
    [
        "{over: input.items, count: '1', at_most: 3}",
        "{at_most: 3}",
        "{over: input.items}",
        "{over: input.items, at_most: 0}",
        "{over: input.items, at_most: 1001}",
        "{over: input.items, at_most: 3, unqiue: [/n]}",
    ],
)
def test_a_malformed_list_is_refused(each: str) -> None:
    assert not isinstance(load_document(lines(each)), Loaded)


def test_a_list_that_may_not_fit_into_max_turns_is_pointed_out() -> None:
    found = {(one.code, one.severity.value) for one in findings_of(lines("{over: input.items, at_most: 51}"))}
    assert ("list_beyond_max_turns", "warning") in found
    assert "list_beyond_max_turns" not in {one.code for one in findings_of(lines("{over: input.items, at_most: 50}"))}
