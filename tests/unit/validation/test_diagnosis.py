"""Where a text stops being one JSON document, why, and what is said of it: to the character.

``scripts/mutants`` changes the careful reader and its diagnosis bit by bit, and some test must notice. The quick reader
leaves alone what has an exponent or many brackets, so that these texts go where they are meant to.
"""

from __future__ import annotations

import pytest

from stepladder.schemas.outcomes import Cause
from stepladder.validation.diagnosis import diagnose
from stepladder.validation.parse import NotJson, parse


def told(text: str) -> tuple[str, int] | None:
    """The cause and the character, or None for a document."""
    found = parse(text.encode("utf-8", "surrogatepass"))
    return (found.cause.value, found.offset) if isinstance(found, NotJson) else None


def reason(text: str) -> str:
    found = parse(text.encode("utf-8", "surrogatepass"))
    assert isinstance(found, NotJson)
    return found.reason


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_the_bounds_are_what_the_pages_say() -> None:
    assert told('"' + "x" * (1_048_576 - 2) + '"') is None
    assert told('"' + "x" * (1_048_576 - 1) + '"') == ("too_large", 1_048_576)
    assert told("[1e5, " + "9" * 308 + "]") is None
    assert told("[1e5, " + "9" * 309 + "]") == ("number_too_large", 6)
    assert told("[1e5, -" + "9" * 308 + "]") is None
    assert told("[1e5, -" + "9" * 309 + "]") == ("number_too_large", 6)
    assert told("[" * 128 + "1e5" + "]" * 128) is None
    assert told("[" * 129 + "1e5" + "]" * 129) == ("too_deep", 128)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" + ", ".join(["[]"] * 300) + "]", None),
        ("[" + ", ".join(["{}"] * 300) + "]", None),
        ("[" + "[],{}," * 200 + "[" * 127 + "]" * 127 + "]", None),
        ("[" + "[],{}," * 200 + "[" * 128 + "]" * 128 + "]", ("too_deep", 1328)),
        ('{"a":' * 128 + "1e5" + "}" * 128, None),
        ('{"a":' * 129 + "1e5" + "}" * 129, ("too_deep", 640)),
        ('["\\\\",' + "[" * 128 + "]" * 128 + "]", ("too_deep", 133)),
        ('["\\"' + "[" * 300 + '", 1e5]', None),
        ('["a:b", ' + '"[{", ' * 300 + "1]", None),
        (" \n\t\r" + "[" * 129 + "]" * 129, ("too_deep", 132)),
        ("so " + "[" * 300 + "1" + "]" * 300, ("prose_before", 0)),
        ('"a" ' + "[" * 300, ("prose_after", 4)),
    ],
)
def test_depth_is_counted_over_brackets_that_are_open_alone(text: str, expected: tuple[str, int] | None) -> None:
    assert told(text) == expected


# What the decoder's hooks refuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e999", ("number_too_large", 0)),
        ("9" * 309 + ".0", ("number_too_large", 0)),
        ("NaN", ("non_finite_number", 0)),
        (" \n1e999", ("number_too_large", 2)),
        ("[1, 1e999]", ("number_too_large", 4)),
        ('{"1e999": "1e999", "b": 1e999}', ("number_too_large", 24)),
        ("[-1e999]", ("number_too_large", 1)),
        ("[1e-999, 1e308]", None),
        ("[1, NaN]", ("non_finite_number", 4)),
        ("[1, -Infinity, NaN]", ("non_finite_number", 4)),
        ("[1, NaNx]", ("non_finite_number", 0)),  # refused before its end is seen: where, is not known
        ('{"a": 1, "a": 2}', ("duplicate_key", 9)),
        ('{"a": 1, "b": 2, "b": 3}', ("duplicate_key", 17)),
        ('{"a":1,"b":2,"b":3,"a":4}', ("duplicate_key", 19)),
        ('{"a": [1], "a": 2}', ("duplicate_key", 11)),
        ('{"a": {"b": 1}, "a": 2}', ("duplicate_key", 16)),
        ('{"b": {"a": 1}, "a": 1, "a": 2}', ("duplicate_key", 24)),
        ('[{"a":1},{"a":1,"a":2}]', ("duplicate_key", 16)),
        ('[[{"x": {"": 1, "": 2}}]]', ("duplicate_key", 16)),
        ('{"ä": 1, "ä": 2}', ("duplicate_key", 9)),
        ('{"a": 1, "\\u0061": 2}', ("duplicate_key", 9)),
        ('{"a": "a", "b": "a"}', None),
    ],
)
def test_what_is_refused_is_found_again(text: str, expected: tuple[str, int] | None) -> None:
    assert told(text) == expected


def test_what_is_refused_is_named_and_cut_short() -> None:
    assert reason('{"a":1,"b":2,"b":3}') == 'an object must not have the same name twice; "b" occurs twice'
    long = "x" * 38
    assert f'"{long}" occurs twice' in reason(f'{{"{long}": 1, "{long}": 2}}')
    assert f'"{"x" * 29}… (41 characters) occurs twice' in reason(f'{{"{long}x": 1, "{long}x": 2}}')
    assert reason("[NaN]") == "a number must be finite; NaN is not JSON"
    assert reason("[1e999]") == "a number must not be that large; 1e999 cannot be stored"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["ab\\ud800"]', ("bad_unicode", 4)),
        ('["ab\\udfff"]', ("bad_unicode", 4)),
        ('["\\ud800\\udbff"]', ("bad_unicode", 2)),
        ('["\\ud800\\ue000"]', ("bad_unicode", 2)),
        ('["\\ud800\\u0041"]', ("bad_unicode", 2)),
        ('["\\ud800", "\\udc00"]', ("bad_unicode", 2)),
        ('["\\ud800\\udc00\\udc00"]', ("bad_unicode", 14)),
        ('["\\ud800\\udc00\\ud800"]', ("bad_unicode", 14)),
        ('["\\ud800\\n\\udc00"]', ("bad_unicode", 2)),
        ('["\\ud800\\udc00", 1e5]', None),
        ('["\\udbff\\udfff", 1e5]', None),
        ('["\\uDBFF\\uDFFF", 1e5]', None),
        ('["\\ud7ff", "\\ue000", 1e5]', None),
        ('["\\ud7ff\\ud83d\\ude00\\ue000", 1e5]', None),
        ('["\\\\ud800", "\\\\\\\\udc00", 1e5]', None),
        ('["\\n\\u0041\\ud83d\\ude00\\t", 1e5]', None),
        ('{"\\ud800": 1}', ("bad_unicode", 2)),
        ("[\ud800]", ("bad_unicode", 1)),
        ('["\ud800"]', ("bad_unicode", 2)),
    ],
)
def test_an_unpaired_surrogate_is_found_everywhere(text: str, expected: tuple[str, int] | None) -> None:
    assert told(text) == expected


def test_an_unpaired_surrogate_is_named() -> None:
    assert reason('["\\uD800"]') == "the text contains an unpaired surrogate, \\uD800"


# Text around a document -----------------------------------------------------------------------------------------------

DOC = '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "cause", "offset"),
    [
        # markup
        *((f"{mark}\n{DOC}", "tool_call_markup", 0) for mark in (
            "<tool_call>", "<toolcall>", "<tool_calls>", "<tool_use>", "<tool_code>", "<function_call>",
            "<function_calls>", "<start_function_call>", "<invoke>", "</tool_call>", "<|tool_call>", "<|/tool_call>",
            "<function=f>", "<function name='f'>", "<x:tool_call>", "<x-y:function_calls>", "<x:invoke>",
            "<|python_tag|>", "<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>",
            "<|tool_call|>", "<|action_start|>", "<|plugin|>", "<｜tool▁calls▁begin｜>", "<|tool_call_begin|>",
            "<|tool calls begin|>", "to=functions.f", "[TOOL_CALLS]", "[TOOL_CALL]", "✿FUNCTION✿",
            "<TOOL_CALL>", "<tool_call name='f'>",
        )),
        (f"[/TOOL_CALLS]{DOC}", "tool_call_markup", 0),
        (f"I call <tool_call>{DOC}", "tool_call_markup", 7),
        (f"{DOC}</tool_call>", "tool_call_markup", 8),
        (f"{DOC} and <tool_call>", "tool_call_markup", 13),
        (f"<tool_call>```{DOC}```</tool_call>", "tool_call_markup", 0),
        ('{"a": "<tool_call>",}', "trailing_comma", 19),
        ('{"a": <tool_call>}', "syntax", 6),
        (f"<tool_caller> {DOC}", "prose_before", 0),
        # fences
        (f"```json\n{DOC}\n```", "markdown_fence", 0),
        (f"~~~\n{DOC}\n~~~", "markdown_fence", 0),
        (f"Here: ```{DOC}```", "markdown_fence", 6),
        (f"```\n{DOC[:-1]},}}\n```", "markdown_fence", 0),
        (f"{DOC}```", "markdown_fence", 8),
        (f"{DOC} so ```", "markdown_fence", 12),
        (f"``{DOC}``", "quotes", 0),
        ("```\n[1]\n```", "markdown_fence", 0),
        ("[1] ```", "markdown_fence", 4),
        ('["```", ]', "trailing_comma", 6),
        # prose
        (f"Sure: {DOC}", "prose_before", 0),
        (f" \nSure: {DOC}", "prose_before", 2),
        (f"1. {DOC}", "prose_before", 0),
        (f"true to form {DOC}", "prose_before", 0),
        (f'"a" is {DOC}', "prose_after", 4),
        ("Sure: [1]", "prose_before", 0),
        ("Sure: ['a']", "prose_before", 0),
        ("Sure: {'a': 1}", "prose_before", 0),
        ("I see [no] {thing} here", "syntax", 0),
        ("Sure: [see]", "syntax", 0),
        ("Sure: {}", "prose_before", 0),
        ("Sure: []", "prose_before", 0),
        ("Sure: [[1]]", "prose_before", 0),
        ("Sure: [{]", "prose_before", 0),
        ("Sure: [-1]", "prose_before", 0),
        ("Sure: [true]", "prose_before", 0),
        ("Sure: [false]", "prose_before", 0),
        ("Sure: [null]", "prose_before", 0),
        ("Sure: [truer]", "syntax", 0),
        ("Sure: [ \t\r\n1]", "prose_before", 0),
        (f"{DOC} Right?", "prose_after", 9),
        (f"{DOC}Right", "prose_after", 8),
        (f"{DOC}{DOC}", "prose_after", 8),
        (f"{DOC}, {DOC}", "prose_after", 8),
        (f"{DOC} ]", "syntax", 9),
        (f"{DOC} }}", "syntax", 9),
        (f"{DOC} : 1", "syntax", 9),
        ("1 2", "prose_after", 2),
        ("12x", "syntax", 2),
        ("1.x", "syntax", 1),
        ("truex", "syntax", 4),
        ('"a"x', "prose_after", 3),
        ("[1]x", "prose_after", 3),
        # commas
        ('{"a": 1,}', "trailing_comma", 7),
        ('{"a": 1 , }', "trailing_comma", 8),
        ('{"a": [1, 2, ], }', "trailing_comma", 11),
        ("{'a': 1,}", "quotes", 1),
        ("[1,,2]", "syntax", 3),
        ("[1,]", "trailing_comma", 2),
        ("[1, 2 ,\n]", "trailing_comma", 6),
        (f"{DOC},", "trailing_comma", 8),
        (f"{DOC} , ", "trailing_comma", 9),
        (f"{DOC},,", "prose_after", 8),
        ("[,]", "syntax", 1),
        ("{,}", "syntax", 1),
        ("[1,", "syntax", 3),
        ("[1,}", "trailing_comma", 2),
        # numbers that are none
        ('{"a": nan}', "non_finite_number", 6),
        ("[1, +Infinity]", "non_finite_number", 4),
        ("[1, -inf]", "non_finite_number", 4),
        ("[1, INF]", "non_finite_number", 4),
        ("[1, infinite]", "syntax", 4),
        ("[1, nano]", "syntax", 4),
        ("nan", "syntax", 0),
        ("[1 nan]", "non_finite_number", 3),
        ("1 nan", "prose_after", 2),
        # nothing to be named
        ("", "syntax", 0),
        (" \n", "syntax", 2),
        ("hello", "syntax", 0),
        ('{"a": yes}', "syntax", 6),
        ('{"a" 1}', "syntax", 5),
        ('{"a": 1', "syntax", 7),
        ('{"a": "b', "syntax", 6),
        ('"a\tb"', "syntax", 2),
        ('"a\\xb"', "syntax", 2),
        ("\ufeff{}", "syntax", 0),
        ("// no\n{}", "prose_before", 0),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(text: str, cause: str, offset: int) -> None:
    assert told(text) == (cause, offset)


@pytest.mark.parametrize(
    ("text", "at", "cause", "offset"),
    [
        ('{"a": 1,}', 7, "trailing_comma", 7),
        ("[1, 2 , \n]", 6, "trailing_comma", 6),
        ("[[1,]]", 3, "trailing_comma", 3),
        ("[1,]", 2, "trailing_comma", 2),
        ("[,]", 1, "syntax", 1),
        ("{,}", 1, "syntax", 1),
        ("[1, [,]]", 5, "syntax", 5),
        ("[1,2]", 2, "syntax", 2),
    ],
)
def test_a_decoder_may_point_at_the_comma_itself(text: str, at: int, cause: str, offset: int) -> None:
    found = diagnose(text, at, None)
    assert (found.cause, found.offset) == (cause, offset)


@pytest.mark.parametrize("sign", "‘’‚‛“”„‟′″＂＇«»‹›「」『』`´'")
def test_each_foreign_quote_is_named(sign: str) -> None:
    for text, offset in ((f"{{{sign}a{sign}: 1}}", 1), (f'{{"a": {sign}b{sign}}}', 6), (f"[1, {sign}b{sign}]", 4)):
        assert told(text) == ("quotes", offset)
        assert f'use " instead of {sign} (U+{ord(sign):04X})' in reason(text)


@pytest.mark.parametrize("sign", "‘’‚‛“”„‟′″＂＇«»‹›「」『』`´")
def test_a_text_that_is_closed_by_a_foreign_quote_swallows_what_follows(sign: str) -> None:
    assert told(f'{{"a{sign}: 1}}') == ("quotes", 3)
    assert told(f'{{"a": "b{sign}}}') == ("quotes", 8)
    assert told(f'{{"a": "b{sign}\n}}') == ("quotes", 8)
    assert told(f'{{"a": "b{sign}, "c": 1}}') == ("quotes", 8)


@pytest.mark.parametrize(
    ("sign", "plain"), [("：", ":"), ("，", ","), ("｛", "{"), ("｝", "}"), ("［", "["), ("］", "]")]
)
def test_each_wide_sign_is_named(sign: str, plain: str) -> None:
    text = {"：": '{"a"：1}', "，": "[1，2]", "｛": '｛"a": 1}', "｝": '{"a": 1｝', "［": "［1]", "］": "[1］"}[sign]
    assert told(text) == ("quotes", text.index(sign))
    assert f"use {plain} instead of {sign} (U+{ord(sign):04X})" in reason(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“Well”", ("syntax", 0)),
        (f"“{DOC}”", ("quotes", 0)),
        (f"'Well': {DOC}", ("quotes", 0)),
        ("‘[1]’", ("quotes", 0)),
        (f"{DOC} “so”", ("prose_after", 9)),
        ('{"a": "“b”, c" "d": 1}', ("syntax", 15)),
        ('{"a": "b" c”}', ("syntax", 10)),
        ('{"a": "b", c: 1}', ("syntax", 11)),
        ('{"a": “b”}', ("quotes", 6)),
        ('{"a”: 1, "b": 2}', ("quotes", 3)),
        ('{"a": "b”, "c": "d"}', ("quotes", 8)),
        ('{"a": "b" "c": "d”}', ("syntax", 10)),
        ('{"a": "b" "c\\"d": "e”}', ("syntax", 10)),
        ('{"a": "b" 1 ”}', ("syntax", 10)),
        ('{"a": "x”, y", "b": "c\n"}', ("syntax", 22)),
        ('{"a": "x”, y", "b": "c" d}', ("syntax", 24)),
        ("[1 }", ("syntax", 3)),
        ('{"a": }', ("syntax", 6)),
        ('Sure: {"a": "<tool_call>"}', ("prose_before", 0)),
        ('Sure: {"a": "```"}', ("prose_before", 0)),
    ],
)
def test_quotes_that_open_a_text_or_swallow_one_are_told_from_others(text: str, expected: tuple[str, int]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the answer must be one complete JSON document; it ends too early"),
        ('{"a": 1', "the answer must be one complete JSON document; it ends too early"),
        ('{"a": "b', "the answer must be one complete JSON document; it ends too early"),
        ('{"a": "b \\" c', "the answer must be one complete JSON document; it ends too early"),
        ('"a\\"', "the answer must be one complete JSON document; it ends too early"),
        ('{"a" "b": 1}', 'the answer must be one JSON document; "\\"" is not allowed at character 5'),
        ("hello there", "the answer must be one JSON document; it contains none"),
        ("\ufeff{}", "the answer must be one JSON document, without a byte order mark before it"),
        ('"a\nb"', "a control character inside a string must be escaped, a line break as \\n"),
        ('{"a": yes}', 'the answer must be one JSON document; "yes" is not allowed at character 6'),
        (f'{{"a": {"y" * 30}}}', f'the answer must be one JSON document; "{"y" * 20}" is not allowed at character 6'),
        ('{"a" 1}', 'the answer must be one JSON document; "1" is not allowed at character 5'),
        ('{"a": é}', 'the answer must be one JSON document; "é" is not allowed at character 6'),
        ("{\x00}", 'the answer must be one JSON document; "\\u0000" is not allowed at character 1'),
        (f"{DOC} {DOC}", "the answer must be one JSON document, without a second one after it"),
        (f"{DOC} [1]", "the answer must be one JSON document, without a second one after it"),
        (f"{DOC} so", "the answer must be one JSON document, without text after it"),
        (f"so {DOC}", "the answer must be one JSON document, without text before it"),
        (f"```{DOC}```", "the answer must be one JSON document, without a Markdown fence"),
        ("[1,]", "a comma must not come before a closing bracket"),
        ("[+inf]", "a number must be finite; +inf is not JSON"),
    ],
)
def test_what_is_said(text: str, expected: str) -> None:
    assert reason(text) == expected


def test_bytes_that_are_no_text_are_found_too() -> None:
    found = parse(b'{"a": "\xff"}')
    assert found == NotJson(Cause.BAD_UNICODE, "the answer must be UTF-8; the byte at offset 7 is not", 7)
    assert reason('"' + "x" * 1_048_576 + '"') == "the answer must be at most 1048576 bytes long, and has 1048578"
    assert reason("[" * 129) == "the answer must not nest arrays and objects more than 128 deep"
