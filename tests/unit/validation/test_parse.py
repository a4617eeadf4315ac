from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.outcomes import Cause
from stepladder.validation.diagnosis import PRECEDENCE
from stepladder.validation.parse import (
    DEFAULT_LIMITS,
    MAX_INTEGER_DIGITS,
    Limits,
    NotJson,
    Parsed,
    parse,
    read_carefully,
    read_quickly,
)

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


# What the quick reader takes and JSON does not, or what a bound refuses; and what is close to either.
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
    quick = read_quickly(content, limits)
    careful = read_carefully(content, limits)
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


def test_surrogate_pairs_and_escapes_read_as_the_characters_they_stand_for() -> None:
    assert parse('["\\ud83d\\ude00", "😀", "\\\\ud800", "\\u0000"]'.encode()) == Parsed(["😀", "😀", "\\ud800", "\0"])


@pytest.mark.parametrize(
    ("content", "limits", "cause"),
    [
        (b"[[[", Limits(max_depth=2), Cause.TOO_DEEP),
        (b"[]", Limits(max_depth=0), Cause.TOO_DEEP),
        (b"1", Limits(max_depth=0), None),
        (b"1", Limits(max_bytes=0), Cause.TOO_LARGE),
        (b"12", Limits(max_integer_digits=1), Cause.NUMBER_TOO_LARGE),
    ],
)
def test_the_limits_are_the_callers_and_zero_is_zero(content: bytes, limits: Limits, cause: Cause | None) -> None:
    found = parse(content, limits)
    assert (found.cause if isinstance(found, NotJson) else None) is cause


def test_every_diagnosis_but_syntax_occurs_once_in_the_table() -> None:
    causes = [row[0] for row in PRECEDENCE]
    assert len(causes) == len(set(causes))
    assert Cause.SYNTAX not in causes


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
