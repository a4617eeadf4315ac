from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.outcomes import Cause
from stepladder.validation.diagnosis import PRECEDENCE
from stepladder.validation.parse import (
    DEFAULT_LIMITS,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER_DIGITS,
    Limits,
    NotJson,
    Parsed,
    _carefully,
    _quickly,
    parse,
)

DOCUMENT = '{"a": 1}'

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=5)
    ),
    max_leaves=25,
)


def cause(text: str | bytes, limits: Limits | None = None) -> Cause | None:
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    result = parse(content, limits) if limits else parse(content)
    return result.cause if isinstance(result, NotJson) else None


@given(json_values, st.booleans(), st.sampled_from([None, 0, 3]))
def test_valid_json_reads_as_the_standard_library_reads_it(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert parse(f" \r\n\t{text}\n ".encode()) == Parsed(json.loads(text))


@given(st.binary(max_size=200) | st.text(alphabet="{}[]\",:\\u0dD8e+-.1 \n“”：'`<>|naNifty\ud800", max_size=60))
def test_whatever_the_bytes_nothing_is_raised_and_what_is_accepted_is_json(content: bytes | str) -> None:
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    match parse(content):
        case Parsed(value):
            assert json.loads(content) == value
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        case NotJson(_, reason, offset):
            assert reason
            assert 0 <= offset <= len(content)


@given(json_values, st.data())
def test_a_document_cut_short_is_never_accepted_as_another(value: object, data: st.DataObject) -> None:
    text = json.dumps({"v": value})
    assert isinstance(parse(text[: data.draw(st.integers(0, len(text) - 1))].encode()), NotJson)


# What the quick reader takes and JSON does not, or what a bound refuses; and what stands close to either.
SPLINTERS = [
    *("1e400", "-1E+309", "1e-400", "1e5", "0e9", "-0", "-0.0", "1.", "01", "+1", "NaN", "-Infinity", "5e-324"),
    *("9" * 308, "9" * 309, "-" + "1" * 308, "0." + "0" * 400 + "1", "9" * 309 + ".5", "1" * 5000),
    *("17976931348623158" + "0" * 292, "17976931348623159" + "0" * 292 + ".0", str(2**64), str(2**53 + 1) + ".0"),
    *(r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00\ud800"', r'"\u0061"', r'"\u0000"', r'"\/\b\""', r'"\x"', '"a\tb"'),
    *('{"a": 1, "a": 2}', r'{"a": 1, "\u0061": 2}', '{"": 1, "": 2}', '{"a": {"b": 1}, "b": {"a": 1}}'),
    *("[" * 128 + "]" * 128, "[" * 129 + "]" * 129, "[" * 201 + "]" * 201, '"' + "[" * 300 + '"', "[]"),
    *("\ufeff", "\x0b", "\x00", "\x7f", "\u00a0", "\ud800", " \n\t\r", "//", "/**/", "'a'", "null", "true"),
    *(",", "]", "}", '"', "\\"),
]


@st.composite
def splintered(draw: st.DrawFn) -> bytes:
    """A document with splinters in place of some of its bytes, so that some are documents still."""
    text = json.dumps(draw(json_values), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    for _ in range(draw(st.integers(0, 2))):
        starts = [place for place, sign in enumerate(text) if sign in '[{:,"0123456789'] or [0]
        at = draw(st.sampled_from(starts)) + draw(st.integers(0, 1))
        text = text[:at] + draw(st.sampled_from(SPLINTERS)) + text[at + draw(st.integers(0, 3)) :]
    return text.encode("utf-8", "surrogatepass")


def agree(content: bytes, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the quick reader took ``content``; it then gave what the careful one gives, in types and order too."""
    quick = _quickly(content, limits)
    careful = _carefully(content, limits)
    assert quick is None or repr(quick) == repr(careful)
    assert repr(parse(content, limits)) == repr(careful)
    return quick is not None


@given(splintered() | st.binary(max_size=60) | st.text('{}[]",:\\u0dD8e+-.1 \n', max_size=40).map(str.encode))
def test_the_quick_reader_never_differs_from_the_careful_one(content: bytes) -> None:
    agree(content)


@pytest.mark.parametrize("splinter", SPLINTERS, ids=lambda splinter: f"{splinter!a:.20}")
def test_nor_beside_what_the_bounds_refuse(splinter: str) -> None:
    for frame in ("{}", "[{}]", '{{"a": {}}}', "[1, {}, 2]", "{} ", " {}"):
        content = frame.format(splinter).encode("utf-8", "surrogatepass")
        agree(content)
        agree(content, Limits(max_depth=1, max_integer_digits=3))
        agree(content, Limits(max_depth=1000, max_integer_digits=4000))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 25), st.integers(1, 307), st.data())
def test_both_readers_round_numbers_alike(number: float, places: int, digits: int, data: st.DataObject) -> None:
    integer = data.draw(st.integers(-(10**digits), 10**digits))
    for spelled in (repr(number), f"{number:.{places}f}", f"{number:.{places}e}", str(integer), f"{integer}.{digits}"):
        agree(spelled.encode())


def test_a_plain_document_is_read_by_the_quick_reader() -> None:
    value = {"name": "Größe 😀", "lines": [{"n": 1, "price": 2.5, "ok": True, "none": None}] * 60, "big": 2**70}
    for ascii_only in (True, False):
        assert agree(json.dumps(value, ensure_ascii=ascii_only).encode())


def test_integers_stay_exact_and_other_numbers_are_floats() -> None:
    big = 10 ** (MAX_INTEGER_DIGITS - 1) + 1
    result = parse(f"[{big}, -{big}, 1.0, 1e2, -0]".encode())
    assert isinstance(result, Parsed)
    assert result.value == [big, -big, 1.0, 100.0, 0]
    assert [type(number) for number in result.value] == [int, int, float, float, int]


@pytest.mark.parametrize("text", ["1e309", "-1e400", "9" * 309, "-" + "9" * 309, "1" * 5000, "9" * 309 + ".0"])
def test_numbers_beyond_a_double_are_refused(text: str) -> None:
    assert cause(text) is Cause.NUMBER_TOO_LARGE
    assert cause(f'{{"a": [{text}]}}') is Cause.NUMBER_TOO_LARGE


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '{"a": nan}', '{"a": -inf}', "[+Infinity]"])
def test_what_is_no_finite_number_is_named_so(text: str) -> None:
    assert cause(text) is Cause.NON_FINITE_NUMBER


def test_a_name_that_stands_twice_is_found_at_any_depth_and_in_any_spelling() -> None:
    assert cause('{"a": 1, "b": 2, "a": 1}') is Cause.DUPLICATE_KEY
    assert cause('{"a": 1, "\\u0061": 2}') is Cause.DUPLICATE_KEY
    assert cause('[[{"x": {"": 1, "": 2}}]]') is Cause.DUPLICATE_KEY
    assert cause('{"a": {"a": {"a": 1}}, "A": 2}') is None
    found = parse(b'{"a": {"b": 1}, "c": {"b": 2, "b": 3}}')
    assert isinstance(found, NotJson)
    assert (found.offset, '"b"' in found.reason) == (30, True)


@pytest.mark.parametrize(
    "content",
    [r'"\ud800"', r'"\udc00"', r'"\ud800\ud800"', r'"\ud800x\udc00"', r'"\udc00\ud800"', r'{"\udfff": 1}', "\ud83d"],
)
def test_half_a_character_is_refused(content: str) -> None:
    assert cause(content) is Cause.BAD_UNICODE


def test_whole_characters_are_kept_however_they_are_spelled() -> None:
    assert parse('["\\ud83d\\ude00", "😀", "\\\\ud800", "\\u0000"]'.encode()) == Parsed(["😀", "😀", "\\ud800", "\0"])
    assert cause(b'"\xff"') is Cause.BAD_UNICODE
    assert cause(b'"\xc0\xaf"') is Cause.BAD_UNICODE


def test_depth_is_bounded_and_brackets_in_texts_do_not_count() -> None:
    assert cause("[" * MAX_DEPTH + "]" * MAX_DEPTH) is None
    assert cause("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) is Cause.TOO_DEEP
    assert cause('{"a":' * 100_000) is Cause.TOO_DEEP
    assert cause(json.dumps(["[" * 500, '"' + "{" * 500])) is None
    assert cause("[" * 3, Limits(max_depth=2)) is Cause.TOO_DEEP
    assert cause("1", Limits(max_depth=0)) is None
    assert cause("[]", Limits(max_depth=0)) is Cause.TOO_DEEP


def test_size_is_bounded_in_bytes() -> None:
    assert cause('"' + "x" * (MAX_BYTES - 2) + '"') is None
    assert cause('"' + "x" * (MAX_BYTES - 1) + '"') is Cause.TOO_LARGE
    assert cause("1", Limits(max_bytes=0)) is Cause.TOO_LARGE
    assert cause("12", Limits(max_integer_digits=1)) is Cause.NUMBER_TOO_LARGE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```json\n[1]\n```", Cause.MARKDOWN_FENCE),
        (f"Here:\n```\n{DOCUMENT}\n```\nDone.", Cause.MARKDOWN_FENCE),
        (f"```\n{DOCUMENT[:-1]},}}\n```", Cause.MARKDOWN_FENCE),
        (f"<tool_call>```{DOCUMENT}```</tool_call>", Cause.TOOL_CALL_MARKUP),
        (f"{DOCUMENT}\n<|tool_calls_section_begin|>", Cause.TOOL_CALL_MARKUP),
        (f"to=functions.ship {DOCUMENT}", Cause.TOOL_CALL_MARKUP),
        (f"Well: {DOCUMENT} Right?", Cause.PROSE_BEFORE),
        ("Well: {'a': 1}", Cause.PROSE_BEFORE),
        (f"'Well': {DOCUMENT}", Cause.QUOTES),
        (f"2 of 3: {DOCUMENT}", Cause.PROSE_BEFORE),
        (f"{DOCUMENT} ```", Cause.MARKDOWN_FENCE),
        (f"{DOCUMENT} so “there”", Cause.PROSE_AFTER),
        ("{'a': 1,}", Cause.QUOTES),
        ('{"a”: 1, "b": 2}', Cause.QUOTES),
        ('{"a": "b」}', Cause.QUOTES),
        ('{"a": "b”\n}', Cause.QUOTES),
        ('｛"a": 1}', Cause.QUOTES),
        ('{"a": "“b”, c" "d": 1}', Cause.SYNTAX),
        ('{"a": [1, 2, ], }', Cause.TRAILING_COMMA),
        ('{"a": "```",}', Cause.TRAILING_COMMA),
        ("[1,,2]", Cause.SYNTAX),
        ("{,}", Cause.SYNTAX),
        ("", Cause.SYNTAX),
        ("I see [no] {thing} here", Cause.SYNTAX),
    ],
)
def test_of_several_causes_the_one_that_explains_most_is_named(text: str, expected: Cause) -> None:
    assert cause(text) is expected


def test_every_diagnosis_but_syntax_stands_once_in_the_table() -> None:
    causes = [row[0] for row in PRECEDENCE]
    assert len(causes) == len(set(causes))
    assert Cause.SYNTAX not in causes


def test_reasons_say_what_to_do_and_where() -> None:
    reasons = {
        "```\n1\n```": "the answer must be one JSON document, without a Markdown fence",
        '{"a"：1}': "the answer must be JSON with ASCII punctuation; use : instead of ： (U+FF1A)",
        '{"a": 1': "the answer must be one complete JSON document; it ends too early",
        '{"a": yes}': 'the answer must be one JSON document; "yes" is not allowed at character 6',
        '"a\tb"': "a control character inside a string must be escaped, a line break as \\n",
    }
    for text, reason in reasons.items():
        result = parse(text.encode())
        assert isinstance(result, NotJson)
        assert result.reason == reason


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200 + '"' + '\\"' * 300_000,
        "{" + '"a”:1,' * 100_000,
        "<" * 900_000,
        '{"a":' + "x " * 400_000,
        "{" + ",".join(f'"k{number}": 1' for number in range(50_000)) + ', "k49999": 2}',
        '"' + "\\ud83d\\ude00" * 70_000 + '\\ud83d"',
        "“" * 300_000,
    ],
    ids=["quotes in brackets", "typographic", "angles", "words", "names", "surrogates", "opening quotes"],
)
def test_hostile_texts_are_refused_in_linear_time(text: str) -> None:
    # What is quadratic in any of these takes minutes, so that coming back at all is the test.
    assert isinstance(parse(text.encode()), NotJson)
