"""The classification, word by word: what each finish reason, status, phrase and shape of a body is taken for.

``scripts/mutants`` changes one of them at a time, and some test must notice.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepladder.schemas.answer import Completion, Lost, Received, Usage, Violation
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome
from stepladder.validation import sse
from stepladder.validation.completion import read_json
from stepladder.validation.engine_errors import error_in, error_of
from stepladder.validation.ladder import Criteria, holds_document, judge
from stepladder.validation.parse import MAX_BYTES
from stepladder.validation.termination import AT_MODEL_LIMIT, ENDINGS, STOPS, check, is_runaway, receive, tells_nothing
from support.schemas import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

Verdict = tuple[str, str | None]
BUDGET, RUNAWAY, REASONING = ("truncation", "budget"), ("truncation", "runaway"), ("truncation", "reasoning")
VALID, ABORTED, INCOMPLETE = ("valid", None), ("transport", "aborted"), ("transport", "stream_incomplete")
REJECTED, BROKEN, MALFORMED = ("schema_rejected", None), ("transport", "http_5xx"), ("transport", "malformed_body")
TOO_LONG, BAD, AUTH = (
    ("request_rejected", "context_length"),
    ("request_rejected", "bad_request"),
    ("request_rejected", "auth"),
)


def verdict(
    body: Any, status: int = 200, *, streamed: bool = False, budget: int = 512, known_bad: bool = False
) -> Verdict:
    content = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    criteria = Criteria(compiled(True), max_completion_tokens=budget, schema_known_bad=known_bad)
    found = judge(Received(status, content, streamed), criteria, {})
    return found.outcome.value, found.cause


def chat(finish: Any, content: Any = "{}", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": content, **message}, "finish_reason": finish}]}


# Finish reasons -------------------------------------------------------------------------------------------------------

WORDS: dict[str, Verdict] = {
    "stop": VALID,
    "eos": VALID,
    "end_turn": VALID,
    "stop_sequence": VALID,
    "completed": VALID,
    "tool_calls": VALID,
    "something else": VALID,
    "length": BUDGET,
    "max_tokens": BUDGET,
    "max_output_tokens": BUDGET,
    "model_length": BUDGET,
    "model_context_window_exceeded": BUDGET,
    "incomplete": BUDGET,
    "repetition": RUNAWAY,
    "content_filter": ("refused", "content_filter"),
    "refusal": ("refused", "refusal"),
    "abort": ABORTED,
    "cancelled": ABORTED,
    "error": ABORTED,
    "failed": ABORTED,
    "in_progress": INCOMPLETE,
    "queued": INCOMPLETE,
}


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
@pytest.mark.parametrize("word", WORDS)
def test_each_finish_reason_has_its_meaning_however_it_is_spelled(word: str, spell: Any) -> None:
    assert verdict(chat(spell(word))) == WORDS[word]


@pytest.mark.parametrize("word", ["stop", "eos", "end_turn", "stop_sequence", "completed"])
def test_an_answer_that_ended_by_itself_may_have_used_its_whole_budget(word: str) -> None:
    assert verdict(chat(word) | {"usage": {"completion_tokens": 600}}) == VALID
    assert verdict(chat("word") | {"usage": {"completion_tokens": 600}}) == BUDGET


@pytest.mark.parametrize("finish", [None, "", " ", 7, ["stop"], {"type": "stop"}])
def test_a_finish_reason_that_is_no_word_is_none(finish: Any) -> None:
    assert verdict(chat(finish)) == INCOMPLETE


def test_finish_reasons_are_listed_in_lower_case_with_one_meaning_each() -> None:
    words = [*STOPS, *ENDINGS]
    assert words == [word.lower() for word in words]
    assert len(words) == len(set(words))


def test_of_truncations_the_word_tells_a_runaway_alone() -> None:
    assert all(cause in CAUSES[outcome] for outcome, cause in ENDINGS.values())
    told = {cause for outcome, cause in ENDINGS.values() if outcome is Outcome.TRUNCATION}
    assert told == {Cause.BUDGET, Cause.RUNAWAY}, "what the budget went on is read off the answer"


def test_words_at_the_models_limit_are_truncations() -> None:
    assert {WORDS[word] for word in AT_MODEL_LIMIT} == {BUDGET}
    assert {"model_length", "model_context_window_exceeded"} == AT_MODEL_LIMIT


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (chat("length"), BUDGET),
        (chat("length", None, reasoning="Let me see"), REASONING),
        (chat("length", "  ", reasoning="Let me see"), REASONING),
        (chat("length", ""), REASONING),
        (chat("length", None), REASONING),
        (chat("length", "<think>Let me see"), REASONING),
        (chat("length", "\n<thinking>Let\nme see"), REASONING),
        (chat("length", "<reasoning>Let me see"), REASONING),
        (chat("length", "<think>Let me see</think>{"), BUDGET),
        (chat("length", "<think>Let me\nsee</thinking>{"), REASONING),
        (chat("length", "{<think>"), BUDGET),
        (chat("length", None, tool_calls=[{"id": "1"}]), BUDGET),
        (chat("length", None, function_call={"name": "f"}), BUDGET),
        (chat("length", None, function_call={"name": None}), REASONING),
        (chat("length", None, refusal="I can"), BUDGET),
        (chat("length", "ab" * 40), RUNAWAY),
        (chat("length", None, reasoning="ab" * 40), REASONING),
        (chat("length", " ", reasoning="ab" * 40), REASONING),
        (chat("length", "<think>" + "ab" * 40), REASONING),
        (chat("length", "<think>Yes</think>" + "ab" * 40), RUNAWAY),
        (chat("length", "{", reasoning="ab" * 40), BUDGET),
        (chat("length", None, reasoning_content="ab" * 40), REASONING),
        (chat("length", "\ud800"), BUDGET),
        (chat("stop", "ab" * 40), ("parse_failure", "syntax")),
        (chat("repetition", None, reasoning="ab" * 40), REASONING),
        (chat("repetition", None), RUNAWAY),
        (chat("repetition", "{", reasoning="hm"), RUNAWAY),
        (chat("content_filter") | {"usage": {"completion_tokens": 512}}, BUDGET),
        (chat("abort") | {"usage": {"completion_tokens": 512}}, ABORTED),
        (chat("tool_calls") | {"usage": {"completion_tokens": 511}}, VALID),
        (chat("tool_calls") | {"usage": {"completion_tokens": 512}}, BUDGET),
    ],
)
def test_why_an_answer_was_cut(body: dict[str, Any], expected: Verdict) -> None:
    assert verdict(body) == expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (chat("length"), "the answer was cut off by the budget"),
        (
            chat("length") | {"usage": {"completion_tokens": 9}},
            "the answer was cut off after 9 tokens, with a budget of 512",
        ),
        (
            chat("length", None) | {"usage": {"completion_tokens": 9}},
            "the reasoning used up the budget before the answer began: cut off after 9 tokens, with a budget of 512",
        ),
        (chat("length", "7" * 60), "the answer repeated itself until it was cut off by the budget"),
        (chat("repetition"), "the engine stopped an answer that repeated itself"),
    ],
)
def test_a_truncation_says_what_it_was_cut_by(body: dict[str, Any], reason: str) -> None:
    rejection = check(receive(Received(200, json.dumps(body).encode())), 512)
    assert rejection is not None
    assert (rejection.outcome, rejection.reason) == (Outcome.TRUNCATION, reason)


def test_a_completion_is_checked_in_the_order_of_precedence() -> None:
    def found(body: dict[str, Any], status: int = 200) -> str | None:
        rejection = check(receive(Received(status, json.dumps(body).encode())), 512)
        return None if rejection is None else rejection.outcome.value

    assert found(chat("stop")) is None
    assert found(chat(None)) == "transport"
    assert found(chat("abort")) == "transport"
    assert found(chat("length")) == "truncation"
    assert found(chat("length", None, refusal="no")) == "truncation"
    assert found(chat("stop", None, refusal="no")) == "refused"
    assert found(chat("content_filter")) == "refused"
    assert found({"error": {"message": "invalid schema"}}, 400) == "schema_rejected"
    assert found({}, 400) == "request_rejected"
    # An error beside an answer is what counts, however the answer ended.
    assert found(chat("length") | {"error": {"message": "", "code": 400}}) == "request_rejected"


def test_a_status_that_is_no_success_holds_no_answer() -> None:
    assert verdict(chat("stop"), 199) == MALFORMED
    assert verdict(chat("stop"), 300) == BAD


def breaks(count: int) -> str:
    """White space in which nothing comes three times in a row."""
    return "".join("\n" if number.bit_count() % 2 else " " for number in range(count))


@pytest.mark.parametrize(
    ("text", "runaway"),
    [
        ("{" + breaks(59), False),
        ("{" + breaks(60), True),
        ("7" * 39, False),
        ("7" * 40, True),
        ("n: " + "1234567890" * 3 + "123456789", False),
        ("n: " + "1234567890" * 4, True),
        ("{" + " " * 59, False),
        ("{" + " " * 60, True),
        ("{" + "\t \r\n" * 15, True),
        ("{" + "\v" * 59, False),
        ("x" * 59, False),
        ("x" * 60, True),
        ("abcdefghijklmno" * 4, True),
        ("abcdefghijklmno" * 3 + "abcdefghijklmn", False),
        ("b" + "abcdefghijklmno" * 4, True),
        ("abcdefghijklmno" * 4 + "a", True),
        ("0123456789abcdefghij" * 3, False),
        ("0123456789abcdefghij" * 4, True),
        ("0123456789abcdefghij" * 3 + "0123456789abcdefghi", False),
        ("aab" * 20, True),
        ("aabaaab" * 9, True),
        ("abcabcabd" * 7, True),
        ("".join(chr(0x4E00 + number) for number in range(1024)) * 4, True),
        ("".join(chr(0x4E00 + number) for number in range(1025)) * 4, True),
        ("".join(chr(0x4E00 + number) for number in range(9000)) * 3, False),
        ("x" * 60 + ".", False),
        ("Well: " + "so it goes, " * 6, True),
        (
            '[{"sku": "A1", "qty": 1}, {"sku": "A2", "qty": 2}, {"sku": "A3", "qty": 3}, {"sku": "A4", "qty": 4}, {"s',
            False,
        ),
    ],
)
def test_where_a_runaway_begins(text: str, runaway: bool) -> None:
    assert bool(is_runaway(text)) == runaway


@pytest.mark.parametrize("size", [60, 6_000])
@pytest.mark.parametrize("between", ["", "\n", ",\n", "\n\n```\n\n```json\n"])
@pytest.mark.parametrize("before", ["", "Here it is:\n```json\n"])
def test_a_whole_document_and_more_of_the_same_is_a_runaway(size: int, between: str, before: str) -> None:
    document = json.dumps([{f"field {number}": f"value {number * 7919}" for number in range(size)}])
    whole = before + document
    assert not is_runaway(whole)
    for rest in (document * 5, document[: size // 2], document + between + document[:-1]):
        assert is_runaway(whole + between + rest)


def test_more_of_the_same_may_have_other_values() -> None:
    assert is_runaway('{"n": 1, "of": "a"}\n{"n": 2, "of": "b"}\n{"n"')
    assert is_runaway('{"n": 1}{"n":2')
    assert is_runaway(r'{"a \" b": 1}{"a \" b": 2')
    for rest in ("", "\n", "\nThat is {all}", '\n{"other": 1}', "]", " and so on"):
        assert not is_runaway('{"n": 1}' + rest)
    assert not is_runaway('[1]\n{"n": 1')
    assert not is_runaway("".join(f'{{"{number}":' for number in range(50_000)))
    refrain = "the refrain of a song that is sung again and again by all who know it. "
    assert not is_runaway("".join(f"Verse {number}, {number**5}: {refrain}" for number in range(400)))


@pytest.mark.parametrize("unit", ["a" * 63 + "b", "".join(map(chr, range(0x4E00, 0x9000))), '{"a": [1, 2'])
def test_looking_for_a_runaway_in_a_large_text_ends(unit: str) -> None:
    text = unit * (MAX_BYTES // len(unit))
    assert is_runaway(text)
    is_runaway("x" + text[:-1] + "y")


def test_a_runaway_is_found_wherever_looking_for_every_pattern_finds_one() -> None:
    """Of few letters, so that beginnings of the pattern stand inside it."""
    chance = random.Random(7)  # noqa: S311 -- the same texts each time
    both = set()
    for _ in range(3000):
        unit = "".join(chance.choices("ab", k=chance.randint(1, 24)))
        text = "".join(chance.choices("ab", k=chance.randint(0, 30))) + unit * chance.randint(1, 9)
        text += unit[: chance.randint(0, len(unit))]
        if chance.random() < 0.3:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice("ab") + text[at + 1 :]
        lengths = [max(60, 4 * period) for period in range(1, len(text))]
        runs = [
            length <= len(text) and text[-length:][period:] == text[-length:][:-period]
            for period, length in enumerate(lengths, 1)
        ]
        assert bool(is_runaway(text)) == any(runs), text
        both.add(any(runs))
    assert both == {True, False}


# Statuses -------------------------------------------------------------------------------------------------------------

STATUSES: dict[int, Verdict] = {
    **dict.fromkeys((100, 199, 600, 999, 0), MALFORMED),
    **dict.fromkeys((300, 302, 400, 402, 404, 405, 409, 412, 415, 418, 422, 451, 498), BAD),
    **dict.fromkeys((401, 403, 407), AUTH),
    408: ("transport", "timeout"),
    413: TOO_LONG,
    429: ("transport", "http_429"),
    499: ("transport", "disconnected"),
    503: ("transport", "http_503"),
    **dict.fromkeys((500, 501, 502, 504, 520, 529, 599), BROKEN),
}


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_its_meaning(status: int) -> None:
    assert verdict("out of order", status) == STATUSES[status]
    assert verdict(b"", status) == STATUSES[status]


@pytest.mark.parametrize("status", [200, 201, 299])
def test_every_status_of_success_holds_an_answer(status: int) -> None:
    assert verdict(chat("stop"), status) == VALID


@pytest.mark.parametrize("status", STATUSES)
def test_a_schema_is_refused_by_three_statuses_alone(status: int) -> None:
    refuses = status in (400, 422, 500)
    assert verdict("failed to parse grammar", status) == (REJECTED if refuses else STATUSES[status])
    assert verdict("", status, known_bad=True) == (REJECTED if refuses else STATUSES[status])


@pytest.mark.parametrize("status", STATUSES)
def test_a_request_is_too_long_by_the_statuses_of_a_request_alone(status: int) -> None:
    fits = STATUSES[status] in (BAD, TOO_LONG)
    assert verdict("prompt too long", status) == (TOO_LONG if fits else STATUSES[status])


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ("computer says no", 400, REJECTED),
        ("computer says no", 422, REJECTED),
        ("computer says no", 500, BROKEN),
        ("Internal Server Error", 500, REJECTED),
        ("INTERNAL SERVER ERROR.", 500, REJECTED),
        ("Bad Request", 500, REJECTED),
        (" . ", 500, REJECTED),
        ("Internal Server Error: out of memory", 500, BROKEN),
        ("The prompt is too long", 400, TOO_LONG),
        ("too many tokens", 500, BROKEN),
        ("failed to parse grammar", 500, REJECTED),
    ],
)
def test_a_schema_known_to_be_bad_explains_what_says_nothing_else(words: str, status: int, expected: Verdict) -> None:
    assert verdict(words, status, known_bad=True) == expected


@pytest.mark.parametrize(
    ("arrival", "nothing"),
    [
        (Received(500, b""), True),
        (Received(500, b'{"error": {"message": "", "code": 500}}'), True),
        (Received(500, b"Internal Server Error"), True),
        (Received(500, b'data: {"error": {"message": ""}}\n\n', streamed=True), True),
        (Received(500, b"CUDA error"), False),
        (Received(500, b"failed to parse grammar"), False),
        (Received(500, b"maximum context length"), False),
        (Received(400, b""), False),
        (Received(422, b"no"), False),
        (Received(502, b""), False),
        (Received(503, b""), False),
        (Received(200, b""), False),
        (Lost(Cause.DISCONNECTED, "", b"", 500), False),
    ],
)
def test_which_arrivals_tell_nothing_of_the_schema(arrival: Received | Lost, nothing: bool) -> None:
    assert tells_nothing(arrival) is nothing


def test_the_schema_is_not_known_to_be_bad_by_default() -> None:
    criteria = Criteria(compiled(True))
    assert criteria.max_completion_tokens == 512
    assert judge(Received(500, b""), criteria, {}).outcome is Outcome.TRANSPORT


def test_a_verdict_that_is_none_too_good_carries_all_that_came() -> None:
    body = json.dumps(chat("stop", "{") | {"model": "m"}).encode()
    cut = judge(Received(200, body, retry_after_s=2.0), Criteria(compiled(True)), {})
    assert (cut.outcome, cut.completion.content, cut.completion.model) == (Outcome.PARSE_FAILURE, b"{", "m")
    assert cut.retry_after_s == 2.0
    for content, status in (("{", 200), ("", 200), ("{}", 503)):
        found = judge(Received(status, json.dumps(chat("stop", content)).encode()), Criteria(compiled(True)), {})
        assert [error.pointer for error in found.errors] == [""]
        assert isinstance(found.errors[0], Violation)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [(15, 40, True), (16, 40, False), (40, 15, True), (40, 16, False), (16, 15, True), (16, 16, False)],
)
def test_of_many_braces_sixteen_are_tried_from_either_end(before: int, after: int, found: bool) -> None:
    assert holds_document("{ " * before + '{"a": 1}' + " {" * after) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", True),
        ("[1, 2]", True),
        ("7", False),
        ('\ud800 {"a": 1}', True),
        ("\ud800", False),
        ("so {} it is", False),
        ('So it is {"a": {"b": 1}}, I think.', True),
        ('{} [] 12 "text" {a: 1} [see there]', False),
        ("{" * 5000 + ' then {"a": 1}', True),
        ('{"a":' * 50_000, False),
    ],
)
def test_a_document_in_text_is_an_object_with_fields_or_the_whole_text(text: str, found: bool) -> None:
    assert holds_document(text) is found


def test_a_verdict_says_what_it_was_made_by() -> None:
    for known_bad in (True, False):
        criteria = Criteria(compiled(True), schema_known_bad=known_bad)
        for arrival in (Received(500, b""), Received(200, json.dumps(chat("stop")).encode())):
            assert judge(arrival, criteria, {}).schema_known_bad is known_bad


# Phrases --------------------------------------------------------------------------------------------------------------

SCHEMA_REFUSED = [
    *("The provided JSON schema contains features not supported by xgrammar.", "feature not supported by guidance"),
    *(f"failed to {verb} the grammar" for verb in ("transform", "convert", "compile", "parse", "build", "generate")),
    *(f"failed to {verb} the thing's schema" for verb in ("initialize", "initialise")),
    "Failed to transform it into a regex",
    *(f"the {noun} {said}" for noun in ("grammar", "schema") for said in ("is invalid", "was invalid", "invalid")),
    *(
        f"the grammar is {said}"
        for said in ("unsupported", "not supported", "not valid", "too complex", "too large", "invalid")
    ),
    *("invalid grammar", "Invalid JSON schema", "invalid json grammar", "invalid schema", "unsupported schema"),
    *("Unsupported JSON schema", "Unrecognized schema", "unrecognised schema", "unsatisfiable schema"),
    *("unsupported key in the schema", "unknown word in schema", "unexpected thing in json schema"),
    *("unexpected thing in the json schema", "Grammar error", "grammar compilation", "Unimplemented keys"),
    *("JSON schema conversion failed", "error resolving ref", "cannot parse schema", "regex parsing error"),
    *("regex compilation", "Regex uses unsupported feature", "regex does not have a anchored start"),
    *("regex does not have an anchored start", "error parsing regex", "structured outputs json schema"),
    *("structured output jsonschema", "structured outputs backend does not support"),
    *("lm-format-enforcer does not support it", "lm format enforcer: not supported"),
]
TOO_LONG_WORDS = [
    *("context length", "context_length", "context size", "context window", "maximum context", "max model len"),
    *("max_model_len", "maximum_model_len", "maximum model len", "max_total_tokens", "prompt is too long"),
    *("prompt too long", "input too long", "input is too long", "too many tokens", "too many input tokens"),
    *("too many prompt tokens", "reduce the length of"),
]
NEITHER = [
    *("xgrammar", "guidance", "the schema", "grammar", "failed to compile"),
    *("failed to load the model. A schema was given", "unknown field", "regex", "structured outputs", "tokens"),
    *("the prompt", "lm-format-enforcer", "lm-format-enforcer is up. This is not supported"),
    f"failed to compile {'x' * 61} grammar",
    f"unknown {'x' * 61} in schema",
    "a request that is too long",
]


@pytest.mark.parametrize("message", SCHEMA_REFUSED)
def test_each_phrase_refuses_a_schema(message: str) -> None:
    for said in (message, message.upper(), f"Oops: {message}, sorry"):
        assert verdict({"error": {"message": said}}, 400) == REJECTED


@pytest.mark.parametrize("message", TOO_LONG_WORDS)
def test_each_phrase_says_that_the_request_is_too_long(message: str) -> None:
    for said in (message, message.upper(), f"Oops: {message}, sorry"):
        assert verdict({"error": {"message": said}}, 400) == TOO_LONG


@pytest.mark.parametrize("message", NEITHER)
def test_no_other_words_are_taken_for_either(message: str) -> None:
    assert verdict({"error": {"message": message}}, 400) == BAD


@pytest.mark.parametrize(
    ("before", "after"),
    [("failed to compile", "grammar"), ("unknown", "in schema"), ("lm-format-enforcer", "not supported")],
)
def test_two_halves_of_a_phrase_stand_within_sixty_characters(before: str, after: str) -> None:
    for between, expected in ((" ", REJECTED), (f" {'x' * 58} ", REJECTED), (f" {'x' * 59} ", BAD)):
        assert verdict({"error": {"message": before + between + after}}, 400) == expected


def test_what_refuses_the_schema_and_is_too_long_is_about_the_schema() -> None:
    assert verdict("invalid schema: reduce the length of it", 400) == REJECTED


@pytest.mark.parametrize("field", ["type", "code", "param"])
def test_a_request_is_too_long_by_the_engines_code_too(field: str) -> None:
    assert verdict({"error": {"message": "no", field: "context_length_exceeded"}}, 400) == TOO_LONG
    assert verdict({"error": {"message": "no", field: "invalid schema"}}, 400) == BAD
    assert verdict({"error": {"message": "no", "other": "context_length_exceeded"}}, 400) == BAD


# Errors in bodies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message", "kind", "code"),
    [
        ({"error": {"message": "no", "type": "a", "code": "b", "param": "c"}}, "no", "a b c", None),
        ({"error": {"message": "no", "code": 503}}, "no", "", 503),
        ({"error": {"message": "no", "status_code": 503}}, "no", "", 503),
        ({"error": {"message": "no", "status": "503"}}, "no", "", 503),
        ({"error": {"message": "no", "code": "503"}}, "no", "503", 503),
        ({"error": {"message": "no", "code": "x503", "status": 429}}, "no", "x503", 429),
        ({"error": {"code": 399}}, "", "", None),
        ({"error": {"code": 400}}, "", "", 400),
        ({"error": {"code": 599}}, "", "", 599),
        ({"error": {"code": 600}}, "", "", None),
        ({"error": {"code": "399"}}, "", "399", None),
        ({"error": {"code": "600"}}, "", "600", None),
        ({"error": "no"}, "no", "", None),
        ({"object": "error", "message": "no", "code": 404}, "no", "", 404),
        ({"type": "error", "message": "no"}, "no", "error", None),
        ({"choices": [{"error": {"message": "no", "code": 502}}]}, "no", "", 502),
        ({"error": None, "choices": [{"error": "no"}]}, "no", "", None),
        ({"error": "no", "object": "error", "message": "other"}, "no", "", None),
    ],
)
def test_the_shapes_in_which_errors_come(value: Any, message: str, kind: str, code: int | None) -> None:
    error = error_in(value)
    assert error is not None
    assert (error.message, error.kind, error.code) == (message, kind, code)


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], "error", {}, {"object": "list"}, {"type": "message"}, {"message": "no"}),
        *({"error": None}, {"error": {}}, {"error": ""}, {"error": []}, {"error": 7}, {"choices": []}),
        *({"choices": {}}, {"choices": [7]}, {"choices": "error"}, {"choices": {"error": "no"}}),
        *({"choices": [{"error": None}]}, {"choices": [{}, {"error": "no"}]}),
    ],
)
def test_what_holds_no_error(value: Any) -> None:
    assert error_in(value) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"no", "no"),
        (b'"no"', "no"),
        (b"7", "7"),
        (b"null", ""),
        (b"[]", ""),
        (b'["no", "never"]', "no; never"),
        (b'{"message": "no"}', "no"),
        (b'{"detail": "no"}', "no"),
        (b'{"message": "", "detail": "no"}', "no"),
        (b'{"detail": {"msg": "no"}}', "no"),
        (b'{"detail": {"message": "no"}}', "no"),
        (b'{"detail": {"other": "no"}}', '{"other": "no"}'),
        (b'{"detail": [{"msg": "no"}, "never"]}', "no; never"),
        (b'{"other": "no"}', ""),
        (b'{"error": {"message": {"msg": "no"}}}', "no"),
        (b'{"error": {"message": 7}}', "7"),
        (b'data: {"error": "no"}\n\ndata: {"error": "never"}\n\n', "no"),
        (b"data: no\n\n", "data: no"),
        (b": nothing yet\n\n", ""),
        (b"\xff no", "\ufffd no"),
        (b'"no\\u0000\\u0007 \\ud800 way"', "no    way"),
        (b'"line\\nline\\ttab"', "line\nline\ttab"),
        (b" no ", "no"),
        (b"[" * 100_000, "[" * 2000 + "…"),
        (b"x" * 2000, "x" * 2000),
        (b"x" * 2001, "x" * 2000 + "…"),
        (json.dumps([str(number) for number in range(12)]).encode(), "0; 1; 2; 3; 4; 5; 6; 7; 8; 9"),
    ],
)
def test_the_words_that_are_kept_of_an_error(body: bytes, message: str) -> None:
    assert error_of(body).message == message


def test_an_answer_without_a_word_is_told_by_its_status() -> None:
    rejection = receive(Received(404, b"")).rejection
    assert rejection is not None
    assert rejection.reason == "the engine answered HTTP 404 without a reason"


# Bodies ---------------------------------------------------------------------------------------------------------------


def events(*chunks: Any, end: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + end).encode()


def piece(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\n", [("", b"a", False)]),
        (b"data: a\r\ndata: b\r\n\r\n", [("", b"a\nb", False)]),
        (b"data: a\rdata: b\r\r", [("", b"a\nb", False)]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", b"a", False), ("", b"b", False)]),
        (b"event: \xff\ndata: a\n\n", [("\ufffd", b"a", False)]),
        (b"data: a\ndata: b", [("", b"a\nb", True)]),
        (b"event: x\n\ndata: a\n\n", [("", b"a", False)]),
        (b"data:a\ndata:  b\n\n", [("", b"a\n b", False)]),
        (b"data\n\n", [("", b"", False)]),
        (b"datas: a\nid: 1\n: b\n\n", []),
        (b"\xef\xbb\xbf: hello\n\ndata:  c\xe2\x80\xa8d\n\n", [("", " c\u2028d".encode(), False)]),
    ],
)
def test_the_events_of_a_stream(body: bytes, expected: list[tuple[str, bytes, bool]]) -> None:
    assert [tuple(event) for event in sse.events(body)] == expected


STREAM = (piece({"content": "{"}), piece({"content": "}"}), piece({}, "stop"))


@pytest.mark.parametrize(
    ("body", "streamed", "expected"),
    [
        (events(*STREAM), True, VALID),
        (events(*STREAM), False, VALID),
        (b"\xef\xbb\xbf" + events(*STREAM), False, VALID),
        (b"\n\n" + events(*STREAM), False, VALID),
        (b": hello\n\n" + events(*STREAM), False, VALID),
        (b"event: x\n" + events(*STREAM), False, VALID),
        (b"id: 1\n" + events(*STREAM), False, VALID),
        (b"retry: 1\n" + events(*STREAM), False, VALID),
        (events(*STREAM, end=""), True, VALID),
        (events(*STREAM)[:-20], True, INCOMPLETE),
        (events(*STREAM[:2]), True, INCOMPLETE),
        (events(*STREAM, {"error": {"message": "lost"}}), True, ("transport", "stream_error")),
        (events(*STREAM, {"error": {"message": "", "code": 500}}), True, ("transport", "stream_error")),
        (events(*STREAM) + events({"error": "too late"}), True, VALID),
        (events(*STREAM, end="event: error\ndata: lost\n\n"), True, ("transport", "stream_error")),
        (events(*STREAM, end="event: other\ndata: lost\n\n"), True, MALFORMED),
        (events(*STREAM, end="data: {\n\n"), True, MALFORMED),
        (events(*STREAM, end="data: {"), True, VALID),
        (events(*STREAM, end="data: 7\n\n"), True, MALFORMED),
        (events(*STREAM, end="data:  [DONE] \n\n"), True, VALID),
        (b"", True, INCOMPLETE),
        (b"", False, MALFORMED),
        (b"x", True, INCOMPLETE),
        (json.dumps(chat("stop")).encode(), True, VALID),
        (b"\n " + json.dumps(chat("stop")).encode(), True, VALID),
        (b"[" + json.dumps(chat("stop")).encode() + b"]", True, MALFORMED),
        (b"[]", False, MALFORMED),
        (b"7", False, MALFORMED),
        (b"[" * 100_000, False, MALFORMED),
        (b'{"a":' * 100_000, True, MALFORMED),
        (events(piece({"content": "{}"}, "stop"), {"usage": {"completion_tokens": 3}}), True, VALID),
        (events(piece({"content": "{}"}, "stop"), {"type": "ping"}), True, VALID),
        (events({"response": {"error": {"message": "lost"}}}), True, ("transport", "stream_error")),
        (events({"response": {"error": None}}, *STREAM), True, VALID),
        (events({"response": None}, *STREAM), True, VALID),
    ],
)
def test_what_a_body_holds(body: bytes, streamed: bool, expected: Verdict) -> None:
    assert verdict(body, streamed=streamed) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, MALFORMED),
        ({"choices": []}, MALFORMED),
        ({"choices": {}}, MALFORMED),
        ({"choices": [7]}, MALFORMED),
        ({"choices": [{"index": 1, "message": {"content": "{}"}, "finish_reason": "stop"}]}, MALFORMED),
        ({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}, VALID),
        ({"choices": [7, {"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}]}, VALID),
        ({"choices": [{"index": None, "message": {"content": "{}"}, "finish_reason": "stop"}]}, VALID),
        ({"choices": [{"index": 0, "message": 7, "finish_reason": "stop"}]}, MALFORMED),
        ({"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}, ("empty", "no_content")),
        ({"choices": [{"index": 0, "finish_reason": "stop"}]}, ("empty", "no_content")),
        (chat("stop", 7), MALFORMED),
        (chat("stop", {"text": "{}"}), MALFORMED),
        (chat("stop", []), ("empty", "no_content")),
        (chat("stop", [{"type": "text", "text": "{}"}]), VALID),
        (chat("stop", ["{", "}"]), VALID),
        (chat("stop", ["{", 7, None, [], "}"]), VALID),
        (chat("stop", [{"type": "text", "text": {"text": "{}"}}]), VALID),
        (chat("stop", [{"type": "text", "text": ["{", {"text": "}"}]}]), VALID),
        (chat("stop", [{"type": "text", "text": 7}]), ("empty", "no_content")),
        (chat("stop", [{"type": "image", "text": "{}"}]), ("empty", "no_content")),
        (chat("stop", [{"type": "refusal", "refusal": "no"}]), ("refused", "refusal")),
        (chat("stop", [{"type": "message", "content": "{}"}]), VALID),
        (chat("stop", None, refusal="no"), ("refused", "refusal")),
        (chat("stop", None, refusal=" "), ("empty", "no_content")),
        (chat("stop", None, refusal=7), ("empty", "no_content")),
        (chat("stop", "{}", refusal="no"), ("refused", "refusal")),
        (chat("stop", None, tool_calls=[{"id": "1"}]), ("empty", "unexpected_tool_calls")),
        (chat("stop", None, tool_calls=[]), ("empty", "no_content")),
        (chat("stop", None, function_call={"name": "f"}), ("empty", "unexpected_tool_calls")),
        (chat("stop", None, function_call={"name": ""}), ("empty", "no_content")),
        (chat("stop", None, function_call="f"), ("empty", "no_content")),
        *(
            (chat("stop", [{"type": kind}]), ("empty", "unexpected_tool_calls"))
            for kind in ("tool_use", "tool_call", "function_call", "custom_tool_call")
        ),
        (chat("stop", None, reasoning='{"a": 1}'), ("empty", "content_in_reasoning")),
        (chat("stop", None, reasoning_content='{"a": 1}'), ("empty", "content_in_reasoning")),
        (chat("stop", None, reasoning="", reasoning_content='{"a": 1}'), ("empty", "content_in_reasoning")),
        (chat("stop", None, reasoning="hm", reasoning_content='{"a": 1}'), ("empty", "no_content")),
        (chat("stop", None, reasoning=7), ("empty", "no_content")),
        (chat("stop", None, reasoning='{"a": 1}', tool_calls=[1]), ("empty", "unexpected_tool_calls")),
        (chat("stop", " ", reasoning='{"a": 1}'), ("empty", "content_in_reasoning")),
        *(
            (chat("stop", [{"type": kind, name: '{"a": 1}'}]), ("empty", "content_in_reasoning"))
            for kind, name in (
                ("thinking", "thinking"),
                ("reasoning", "text"),
                ("reasoning", "content"),
                ("reasoning", "summary"),
                ("reasoning_text", "text"),
                ("summary_text", "text"),
            )
        ),
        (chat("stop", [{"type": "output_text", "text": "{}"}]), VALID),
        (chat("stop") | {"error": None}, VALID),
        (chat("stop") | {"error": "lost"}, MALFORMED),
        (chat("stop") | {"error": {"message": "", "code": 429}}, ("transport", "http_429")),
        (chat("stop") | {"error": {"message": "", "code": 500}}, BROKEN),
        (chat("stop") | {"output": [], "status": "completed"}, VALID),
    ],
)
def test_what_a_whole_chat_completion_holds(body: dict[str, Any], expected: Verdict) -> None:
    assert verdict(body) == expected


def test_an_error_inside_a_success_never_tells_of_a_bad_schema_by_saying_nothing() -> None:
    assert verdict({"error": {"message": "", "code": 500}}, known_bad=True) == BROKEN
    assert verdict({"error": {"message": "failed to parse grammar", "code": 500}}) == REJECTED


OUTPUT = [{"type": "message", "content": [{"type": "output_text", "text": "{}"}]}]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"output": OUTPUT, "status": "completed"}, VALID),
        ({"output": OUTPUT}, INCOMPLETE),
        ({"output": OUTPUT, "status": "in_progress"}, INCOMPLETE),
        ({"output": OUTPUT, "status": "queued"}, INCOMPLETE),
        ({"output": OUTPUT, "status": "failed"}, ABORTED),
        ({"output": OUTPUT, "status": "cancelled"}, ABORTED),
        ({"output": OUTPUT, "status": "incomplete"}, BUDGET),
        ({"output": OUTPUT, "status": "incomplete", "incomplete_details": "?"}, BUDGET),
        (
            {"output": OUTPUT, "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            ("refused", "content_filter"),
        ),
        ({"output": OUTPUT, "status": "completed", "incomplete_details": {"reason": "content_filter"}}, VALID),
        ({"output": [], "status": "completed"}, ("empty", "no_content")),
        ({"output": {}, "status": "completed"}, MALFORMED),
        ({"output": [{"type": "function_call"}], "status": "completed"}, ("empty", "unexpected_tool_calls")),
        ({"output": [7, *OUTPUT], "status": "completed"}, VALID),
        ({"type": "message", "content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}, VALID),
        ({"type": "message", "content": "{}", "stop_reason": "end_turn"}, VALID),
        ({"type": "message", "content": "{}", "stop_reason": "max_tokens"}, BUDGET),
        ({"type": "message", "content": "{}", "stop_reason": "refusal"}, ("refused", "refusal")),
        ({"type": "message", "content": 7, "stop_reason": "end_turn"}, MALFORMED),
        ({"type": "message", "stop_reason": "end_turn"}, MALFORMED),
        ({"type": "other", "content": "{}", "stop_reason": "end_turn"}, MALFORMED),
        ({"content": "{}", "stop_reason": "end_turn"}, MALFORMED),
    ],
)
def test_what_a_whole_answer_of_the_other_two_apis_holds(body: dict[str, Any], expected: Verdict) -> None:
    assert verdict(body) == expected


def said(*chunks: Any) -> tuple[Any, ...]:
    completion = receive(Received(200, events(*chunks), streamed=True)).completion
    return completion.content, completion.reasoning, completion.refusal, completion.finish_reason, completion.usage


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed", "cancelled"])
def test_the_last_event_of_the_responses_api_stands_for_all_of_them(kind: str) -> None:
    whole = {"output": OUTPUT, "status": kind, "usage": {"input_tokens": 5, "output_tokens": 9}, "model": "m"}
    cut = [
        {"type": "response.output_text.delta", "delta": "{"},
        {"type": "response.refusal.delta", "delta": "n"},
        {"type": "response.refusal.delta", "delta": "o"},
        {"type": "response.reasoning_text.delta", "delta": "h"},
        {"type": "response.reasoning_summary_text.delta", "delta": "m"},
        {"type": "response.other.delta", "delta": "?"},
        {"type": "response.output_text.delta", "delta": 7},
        {"type": "response.created", "response": {"output": OUTPUT, "status": "in_progress"}},
    ]
    assert said(*cut) == (b"{", "hm", "no", None, None)
    assert said(*cut, {"type": f"response.{kind}", "response": whole}) == (b"{}", None, None, kind, Usage(5, 9))
    assert said(*cut, {"type": f"response.{kind}", "response": "gone"}) == (b"{", "hm", "no", None, None)


def test_a_last_event_without_an_output_is_an_answer_without_one() -> None:
    assert said({"type": "response.failed", "response": {"status": "failed"}}) == (None, None, None, "failed", None)


def test_the_events_of_the_messages_api() -> None:
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}
    chunks: list[dict[str, Any]] = [
        start,
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "{"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "}"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_stop"},
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    ]
    assert said(*chunks) == (b"{}", "hm", None, "end_turn", Usage(5, 9))
    assert said({"type": "message_start", "message": 7}, {"type": "message_delta", "delta": 7})[3:] == (None, None)
    tool = {"type": "content_block_start", "content_block": {"type": "tool_use"}}
    assert verdict(events(tool, chunks[-1]), streamed=True) == ("empty", "unexpected_tool_calls")


def test_the_parts_of_a_streamed_chat_completion() -> None:
    chunks = [
        piece({"content": "{", "reasoning": "h"}, model="m", system_fingerprint="f"),
        piece({"content": "}", "reasoning_content": "m"}, "length", model="other", system_fingerprint="g"),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}, "finish_reason": "stop"}]},
        piece({"refusal": "no", "tool_calls": [{"index": 0}]}),
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}},
    ]
    assert said(*chunks) == (b"{}", "hm", "no", "length", Usage(5, 9))
    head = receive(Received(200, events(*chunks), streamed=True)).completion
    assert (head.model, head.fingerprint, head.tool_calls) == ("m", "f", True)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 9}, Usage(5, 9)),
        ({"input_tokens": 5, "output_tokens": 9}, Usage(5, 9)),
        ({"prompt_tokens": 5}, Usage(5, 0)),
        ({"completion_tokens": 9}, Usage(0, 9)),
        ({"completion_tokens": 0}, Usage(0, 0)),
        ({"completion_tokens": 2**31 - 1}, Usage(0, 2**31 - 1)),
        ({"completion_tokens": 2**31}, None),
        ({"completion_tokens": -1}, None),
        ({"prompt_tokens": 2**31, "completion_tokens": 3}, Usage(0, 3)),
        ({"completion_tokens": "9"}, None),
        ({"completion_tokens": 9.0}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_what_is_counted(usage: Any, counted: Usage | None) -> None:
    assert receive(Received(200, json.dumps(chat("stop") | {"usage": usage}).encode())).completion.usage == counted


def test_a_partial_answer_is_kept_whatever_broke_it() -> None:
    for end in ("data: {\n\n", "data: 7\n\n", 'data: {"error": "lost"}\n\n', "event: error\ndata: lost\n\n"):
        reading = receive(Received(200, events(*STREAM, end=end), streamed=True))
        assert reading.rejection is not None
        assert (reading.completion.content, reading.completion.finish_reason) == (b"{}", "stop")
    whole = receive(Received(200, json.dumps(chat("stop") | {"error": "lost"}).encode()))
    assert whole.completion.content == b"{}"
    lost = receive(Lost(Cause.TIMEOUT, "", events(*STREAM[:1], end=""), 200, streamed=True))
    assert lost.completion.content == b"{"
    assert lost.rejection is not None
    assert (lost.rejection.outcome, lost.rejection.reason) == (Outcome.TRANSPORT, "no answer arrived: timeout")
    page = receive(Lost(Cause.TIMEOUT, "no byte for 30 s", json.dumps(chat("stop")).encode(), 200))
    assert page.completion.content == b"{}"
    assert page.rejection is not None
    assert page.rejection.reason == "no byte for 30 s"


def test_a_completion_holds_all_that_the_answer_says() -> None:
    body = chat("tool_calls", reasoning="hm", refusal=None, tool_calls=[{"id": "1"}])
    body |= {"model": "m", "system_fingerprint": "vllm-1", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    assert receive(Received(200, json.dumps(body).encode())).completion == Completion(
        content=b"{}",
        reasoning="hm",
        finish_reason="tool_calls",
        tool_calls=True,
        usage=Usage(7, 3),
        model="m",
        fingerprint="vllm-1",
    )


@given(st.binary(max_size=40) | st.text('{}[]",:\\ud8Ee+-.01 NaIfinty\ufeff\n', max_size=40).map(str.encode))
@example(b'{"a": NaN}')
@example(b'[1e400, -0, 1.0, 1E2, {"a": 1, "b": 2, "a": 3}]')
@example(rb'["\ud800", "\ud83d\ude00"]')
@example(b'["\xed\xa0\x80"]')
@example(b"\xef\xbb\xbf[1]")
@example("[1]".encode("utf-16"))
@example(b"[" + b"1" * 4300 + b"]")
@example(b"[-" + b"1" * 4301 + b"]")
@example(b"[" * 500 + b"]" * 500)
def test_a_body_is_read_as_the_standard_library_reads_it(body: bytes) -> None:
    def told(read: Callable[[bytes], Any]) -> str:
        try:
            return repr(read(body))
        except ValueError:
            return "no JSON"

    assert told(read_json) == told(json.loads)
