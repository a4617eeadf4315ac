from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepladder.schemas.source import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, MAX_YAML_CHARACTERS, Source, read

if TYPE_CHECKING:
    from stepladder.schemas.finding import Finding

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=5)
    ),
    max_leaves=20,
)


def value_of(text: str) -> Any:
    source = read(text)
    assert isinstance(source, Source), source
    return source.value


def findings(text: str) -> list[Finding]:
    found = read(text)
    assert isinstance(found, list), found
    return found


def codes(text: str) -> list[str]:
    return [finding.code for finding in findings(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("Null", None),
        ("a:", {"a": None}),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("+7", 7),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("0b1", "0b1"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("=", "="),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("%YAML 1.1\n---\na: no\n", {"a": "no"}),
    ],
)
def test_values_are_those_of_yaml_1_2s_core_schema(text: str, value: Any) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@given(JSON, st.sampled_from([None, 2, "\t"]), st.booleans())
@example({"k" * 2000: 1}, None, True)
@example({"a": "\x7f\x85\u2028\ufeff"}, None, False)
@example({"a": "😀"}, None, True)
@example(["\x00"], None, True)
def test_json_reads_back_as_it_was_written(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    assert value_of(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == value


@given(st.text() | st.text(st.sampled_from("{}[]:,-\"'\\&*!|>%#?~ \n\ta1.eu\ud83d\ude00\x00")))
def test_no_text_raises(text: str) -> None:
    assert isinstance(read(text), Source | list)


@given(JSON)
def test_every_value_of_json_has_its_place(value: Any) -> None:
    source = read(json.dumps(value, indent=1))
    assert isinstance(source, Source)
    count = json.dumps(value, indent=1).count("\n")
    assert all(1 <= line <= count + 1 for line, _ in source.places.values())
    assert source.places[""] == (1, 1)


@pytest.mark.parametrize("text", ["a: 1\nb:\n  c: [1, {d: 2}]\n", '{"a": 1,\n"b":\n  {"c": [1, {"d": 2}]}}'])
def test_a_value_stands_on_its_line_and_what_is_missing_around_it(text: str) -> None:
    source = read(text)
    assert isinstance(source, Source)
    assert [source.place(where)[0] for where in ("/a", "/b", "/b/c/1/d")] == [1, 3, 3]
    assert source.place("/b/c/1/x/y") == source.place("/b/c/1")
    assert Source(None).place("/a") == (None, None)


def test_pointers_are_escaped() -> None:
    source = read('{"a/b": {"c~d": 1}}')
    assert isinstance(source, Source)
    assert "/a~1b/c~0d" in source.places


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 2\na: 3\nc: {x: 1, x: 2}\n", '{"a": 1,\n"b": 2,\n"a": 3,\n"c": {"x": 1, "x": 2}}']
)
def test_every_duplicate_key_is_found_with_both_of_its_lines(text: str) -> None:
    first, second = findings(text)
    assert (first.code, first.pointer, first.line) == ("duplicate_key", "/a", 3)
    assert "line 1" in first.message
    assert (second.pointer, second.line) == ("/c/x", 4)
    assert first.remedy


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1: a", "key_not_text"),
        ("? [a]\n: b", "key_not_text"),
        ("true: a", "key_not_text"),
        ("a: !!binary aGk=", "foreign_tag"),
        ("a: !!python/object:os.system x", "foreign_tag"),
        ("a: !env HOME", "foreign_tag"),
        ("a: !mine {b: 1}", "foreign_tag"),
        ("a: !mine [1]", "foreign_tag"),
        ("a: !!set {b, c}", "foreign_tag"),
        ("a: .inf", "not_finite"),
        ("a: -.INF", "not_finite"),
        ("a: .nan", "not_finite"),
        ("a: 1e999", "not_finite"),
        ('{"a": 1e999}', "not_finite"),
        (f"a: {'9' * 309}", "not_finite"),
        ('"\\ud83d"', "bad_unicode"),
        ('{"\\ude00": 1}', "bad_unicode"),
        ("a: 'half \ud83d'", "syntax"),
        ("a: b\x00", "syntax"),
        ('{"a": "\x00"}', "syntax"),
        ("a: [1", "syntax"),
        ("a: b: c", "syntax"),
        ("a: *nobody", "syntax"),
        ("--- a\n--- b\n", "syntax"),
        ("", "empty"),
        ("# nothing\n", "empty"),
    ],
)
def test_what_json_cannot_say_is_refused(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_all_that_is_wrong_is_found_at_once() -> None:
    assert codes("a: 1\na: 2\nb: .nan\nc: !x y\n3: z\n") == [
        "duplicate_key",
        "not_finite",
        "foreign_tag",
        "key_not_text",
    ]


@pytest.mark.parametrize("text", ["a: b: c", "a: 1\nb: [1,\nc: 2"])
def test_broken_syntax_has_a_line_and_a_remedy(text: str) -> None:
    (found,) = findings(text)
    assert found.line is not None
    assert found.remedy


def test_aliases_are_followed() -> None:
    assert value_of("a: &x {b: 1}\nc: *x\n") == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]),
        "a: &a [*a, *a]",
        "a: &a {b: *a}",
        "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2),
        "[" * 100_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        json.dumps([0] * (MAX_NODES + 1)),
    ],
)
def test_bombs_are_refused_once(text: str) -> None:
    assert codes(text) == ["too_deep"]


def test_a_document_may_nest_as_deep_as_the_bound_says() -> None:
    assert isinstance(read("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH), Source)


def test_a_document_may_be_as_long_as_the_bound_says() -> None:
    assert value_of(json.dumps("x" * (MAX_CHARACTERS - 2))) == "x" * (MAX_CHARACTERS - 2)
    assert codes(json.dumps("x" * (MAX_CHARACTERS - 1))) == ["too_large"]
    assert codes("# " + "x" * MAX_YAML_CHARACTERS) == ["too_large"]
