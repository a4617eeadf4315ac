from __future__ import annotations

import copy
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined

from stepladder.workflows.templates import MAX_SOURCE, BadTemplate, RenderFailure, Template, compile_template
from stepladder.workflows.templating.filters import FILTERS, METHODS, TESTS

NAMES: dict[str, Any] = {
    "input": {"team": "search", "items": ["a", "b"], "none": None, "yes": True, "price": 12.0, "map": {"é": [1, None]}},
    "turns": {"usage": {"hours": 12}},
    "rows": [{"q": 2, "n": "b"}, {"q": 1, "n": "a"}],
}


def compiled(source: str) -> Template:
    template = compile_template(source)
    assert isinstance(template, Template), template
    return template


def text(source: str, names: dict[str, Any] = NAMES) -> str:
    result = compiled(source).render(names)
    assert isinstance(result, str), result
    return result


def failure(source: str, names: dict[str, Any] = NAMES) -> RenderFailure:
    result = compiled(source).render(names)
    assert isinstance(result, RenderFailure), result
    return result


def refusal(source: str) -> BadTemplate:
    result = compile_template(source)
    assert isinstance(result, BadTemplate), result
    return result


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ input.team }}", "search"),
        ("{{ input.map }}", '{"é": [1, null]}'),
        ("{{ input.none }} {{ input.yes }} {{ input.price }} {{ 1 }}", "null true 12.0 1"),
        ("{{ '<a href=\"x\">' }} {{ '<é>' | tojson }}", '<a href="x"> "<é>"'),
        ("{{ input.team ~ 1 ~ 2.0 }}", "search12.0"),
        ("{{ input.map | tojson(indent=2) }}", json.dumps({"é": [1, None]}, indent=2, ensure_ascii=False)),
    ],
)
def test_values_are_printed_as_json_and_strings_as_they_are(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ input.items }}", '["a", "b"]'),
        ("{{ input.items[0] }}{{ input.items[-1] }}{{ input.items[1:] }}", 'ab["b"]'),
        ("{{ turns.items() }}", '[["usage", {"hours": 12}]]'),
        ("{{ turns.keys() }} {{ turns.usage.values() }} {{ turns.get('x', 1) }}", '["usage"] [12] 1'),
        ("{{ input.team.upper() }} {{ 'a b'.split() }} {{ 'x'.join(['1', '2']) }}", 'SEARCH ["a", "b"] 1x2'),
        ("{{ 'aXa'.replace('a', 'b') }} {{ ' x '.strip() }} {{ 'ab'.startswith('a') }}", "bXb x true"),
    ],
)
def test_keys_come_before_methods_and_a_call_is_a_method(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{{ nowhere }}", "nowhere"),
        ("{{ nowhere | upper }}{{ 'a' ~ nowhere }}", "nowhere"),
        ("{% for one in nowhere %}{% endfor %}", "nowhere"),
        ("{% if nowhere %}x{% endif %}", "nowhere"),
        ("{{ turns.bill.total }}", "turns.bill.total"),
        ("{{ turns['bill'].total.x }}", "turns.bill.total.x"),
        ("{{ input.items[5] }}", "input.items[5]"),
        ("{{ input.values }}", "input.values"),
        ("{% if turns.bill %}x{% endif %}", "turns.bill"),
        ("{% for line in turns.bill.lines %}x{% endfor %}", "turns.bill.lines"),
        ("{{ turns.bill.total == 1 }}", "turns.bill.total"),
        ("{{ not turns.bill }}", "turns.bill"),
        ("{{ turns.bill.total ~ 'x' }}", "turns.bill.total"),
        ("{{ turns.bill | upper }}", "turns.bill"),
        ("{{ [turns.bill] }}", "turns.bill"),
        ("{% for row in rows %}{{ row.x }}{% endfor %}", "rows[0].x"),
    ],
)
def test_what_is_not_there_fails_and_is_named_in_full(source: str, missing: str | None) -> None:
    problem = failure(source)
    assert problem.missing == missing
    assert missing is None or missing in problem.reason


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ turns.bill.total is defined }}", "false"),
        ("{{ turns.bill.total is not defined }}", "true"),
        ("{{ nowhere.at.all is undefined }}", "true"),
        ("{{ turns.usage.hours is defined }}", "true"),
        ("{{ turns.bill.total | default('none') }}", "none"),
        ("{{ turns.bill.total | default }}.", "."),
        ("{{ turns.bill.total | d(default_value=turns.usage.hours) }}", "12"),
        ("{{ nowhere | default(elsewhere | default('z')) }}", "z"),
        ("{{ '' | default('empty', true) }}{{ '' | default('empty') }}", "empty"),
        ("{{ turns.bill is defined and turns.bill.total > 1 }}", "false"),
        ("{{ 'x' if input.yes else nowhere }}", "x"),
    ],
)
def test_defined_and_default_reach_through_several_levels(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }}", "3.5 3 2 1024"),
        ("{{ 1 == 1.0 }} {{ 1.0 in [1] }} {{ 3 not in [1] }} {{ 1 < 2 <= 2 }}", "true true true true"),
        ("{{ '-' * 3 }}{{ 'a' + 'b' }}{{ [1] + [2] }}", "---ab[1, 2]"),
        ("{% for row in rows if row.q > 1 %}{{ loop.index }}/{{ loop.length }} {{ row.n }}{% endfor %}", "1/1 b"),
        ("{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }}{% if not loop.last %},{% endif %}{% endfor %}", "3,7"),
        ("{% for x in [] %}{% else %}none{% endfor %}", "none"),
        ("{% for i in range(1, 6, 2) %}{{ i }}{% endfor %}", "135"),
        ("{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{% endfor %}{{ x }}", "1"),
        ("{% with a = input.team, b = 2 %}{{ a }}{{ b }}{% endwith %}", "search2"),
        ("{% if false %}a{% elif input.yes %}b{% else %}c{% endif %}", "b"),
        ("{{ rows | sort(attribute='q') | map(attribute='n') | join(', ') }}", "a, b"),
        ("{{ rows | selectattr('q', 'gt', 1) | list | length }}{{ rows | sum(attribute='q') }}", "13"),
        ("{{ rows | rejectattr('x', 'defined') | length }}", "2"),
        ("{{ [3, 1, 1.0] | unique }} {{ [3, 1] | min }} {{ [1, 2] | reverse }}", "[3, 1] 1 [2, 1]"),
        ("{{ 2.675 | round(2) }} {{ '12' | int + 1 }} {{ 'x' | int }}", "2.68 13 0"),
        ("{{ \"don't stop\" | title }} {{ 'a b c' | wordcount }} {{ 'a' | first }}", "Don't Stop 3 a"),
        ("{{ 'one\ntwo' | indent(2) }}|{{ 'a long text' | truncate(5) }}", "one\n  two|a..."),
        ("{{ 3 is odd }} {{ 4 is divisibleby(2) }} {{ 'a' is in ['a'] }} {{ none is none }}", "true true true true"),
        ("{% raw %}{{ x }}{% endraw %}{# gone #}", "{{ x }}"),
    ],
)
def test_the_language_is_jinjas(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "  {% if yes %}\n  a\n  {% endif %}\nb\n",
        "{% for i in list %}\n{{ i }} {{ loop.revindex }} {{ loop.first }}\n{%- endfor -%}\n\n z",
        "{% set a = 'x' %}{% if yes %}{% set a = 'y' %}{% endif %}{{ a }}",
        "{{ word | title }} {{ word | capitalize }} {{ word | replace('e', 'E', 1) }} {{ word | trim }}",
        "{{ lines | indent(3, true) }}|{{ lines | indent(3, first=true, blank=true) }}",
        "{{ lines | truncate(5, true) }}|{{ word | truncate(9) }}",
        "{{ list | join('-') }} {{ list | last }} {{ list | max }} {{ list[::2] | sum }} {{ word.split(' ', 1)[1] }}",
        "{{ 'a' if list else 'b' }}{{ word[1] }}{{ word[-3:] }}{{ 'o' in word }}",
        "{% for k, v in map | dictsort %}{{ k }}{{ v }}{% endfor %}",
    ],
)
def test_the_text_is_the_one_that_jinja_gives(source: str) -> None:
    names = {
        "yes": 1,
        "list": [3, 1, 2],
        "word": "the olden days",
        "lines": "one\n\ntwo and more",
        "map": {"b": 1, "a": 2},
    }

    def lowered(each: Any) -> Any:
        return str(each).lower() if isinstance(each, bool) else each

    # What is rendered is a prompt, not a page.
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=lowered)  # noqa: S701
    assert text(source, names) == jinja.from_string(source).render(names)


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("a\n{{ input._secret }}", 2, "_secret begins with an underscore"),
        ("{{ ''.__class__.__mro__ }}", 1, "__mro__"),
        ("{{ input['_x'] }}", 1, "_x"),
        ("{{ _x }}", 1, "_x"),
        ("{% set _x = 1 %}", 1, "_x"),
        ("\n{{ 'a' | center(1000000000) }}", 2, "there is no filter center"),
        ('{{ "%99999999d" | format(1) }}', 1, "there is no filter format"),
        ("{{ 'x'.ljust(10**9) }}", 1, "there is no method ljust"),
        ("{{ '{0.real}'.format(1) }}", 1, "there is no method format"),
        ("{{ 'a' | uper }}", 1, "did you mean upper?"),
        ("{{ 'a' is strin }}", 1, "did you mean string?"),
        ("{% set a = ['x'] %}" + "{% set a = a + a %}" * 100, 1, "the same data more than 1,000 times"),
        ("{% set a = [1] %}" + "{% set a = [a, a] %}" * 100 + "{{ a }}", 1, "the same data more than 1,000 times"),
        ("{{ cycler() }}", 1, "there is no function cycler"),
        ("{{ (1)(2) }}", 1, "only methods and range can be called"),
        ("{{ rows[1:2, 0] }}", 1, "one index at a time"),
        ("{{ [1] | join(*rows) }}", 1, "* and **"),
        ("{% include 'x' %}", 1, "{% include %}"),
        ("{% import 'x' as y %}", 1, "{% import %}"),
        ("{% from 'x' import y %}", 1, "{% from %}"),
        ("{% extends 'x' %}", 1, "{% extends %}"),
        ("{% block x %}{% endblock %}", 1, "{% block %}"),
        ("{% macro x() %}{% endmacro %}", 1, "{% macro %}"),
        ("{% call x() %}{% endcall %}", 1, "{% call %}"),
        ("{% filter upper %}{% endfilter %}", 1, "{% filter %}"),
        ("{% set x %}a{% endset %}", 1, "{% set %} around text"),
        ("{% autoescape true %}{% endautoescape %}", 1, "{% autoescape %}"),
        ("{% for i in [] recursive %}{% endfor %}", 1, "recursive"),
        ("a\nb {{ x.", 2, "expected name or number"),
        ("{% if %}", 1, "Expected an expression"),
        ("{{ 1e999 }}", 1, "more than a double can hold"),
        ("{{ '\\ud800' }}", 1, "surrogate"),
        ("{{ " + "1" * 5000 + " }}", 1, "a number cannot be read"),
        ("{{ 1" + " + 1" * 100 + " }}", 1, "64 levels"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", 1, "nested too deeply"),
        ("{% if 1 %}" * 1000 + "{% endif %}" * 1000, 1, "nested too deeply"),
        ("x" * (MAX_SOURCE + 1), 1, "65,537 characters"),
    ],
)
def test_a_refusal_says_what_and_in_which_line(source: str, line: int, said: str) -> None:
    problem = refusal(source)
    assert said in problem.reason
    assert problem.line == line


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ 'a' * 10**8 }}", "too many steps"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "too many steps"),
        ("{% for i in range(19999) %}" + "x" * 60_000 + "{% endfor %}", "too many steps"),
        ("{{ s }}{{ s * 10 }}", "1,000,000 characters"),
        ("{% set a = s %}" + "{% set a = a ~ a %}" * 9, "too many steps"),
        ("{% for i in range(20000) %}" + "{% if s | trim %}{% endif %}" * 20 + "{% endfor %}", "too many steps"),
        ("{{ s | replace('x', s) }}{{ s.replace('x', s) }}", "too many steps"),
        ("{{ 'x' | indent(10**9) }}", "too many steps"),
        ("{{ (10**10)**(10**10) }}", "cannot be evaluated"),
        ("{{ range(10**30) }}", "cannot be evaluated"),
        ("{{ 9.5 ** 99999999 }}", "out of range"),
        ("{{ 1 / 0 }}", "1 / 0 cannot be evaluated"),
        ("{{ rows | map(attribute='__class__') }}", "is not defined"),
        ("{{ 'a' + 1 }}", "'a' + 1 cannot be evaluated"),
        ("{{ rows.upper() }}", "cannot take"),
        ("{{ 'a'.items() }}", "cannot be evaluated"),
        ("{% for a, b in [1] %}{% endfor %}", "cannot be evaluated"),
        ("{% for a in 5 %}{% endfor %}", "cannot be evaluated"),
    ],
)
def test_whatever_would_grow_or_misuse_a_value_fails(source: str, said: str) -> None:
    assert said in failure(source, {**NAMES, "s": "x" * 100_000}).reason


def test_numbers_that_json_does_not_have_and_deep_values_fail() -> None:
    assert "out of range" in failure("{{ x }}", {"x": float("nan")}).reason
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert "too deeply" in failure("{{ x }}", {"x": deep}).reason


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{{ turns.usage.team }}{{ turns['usage'].hours }}", {"turns.usage.team", "turns.usage.hours"}),
        ("{{ visits.usage[0].hours }} {{ rows[input.at] }}", {"visits.usage", "rows", "input.at"}),
        ("{{ input.items.upper() }}{{ range(input.n) }}", {"input.items", "input.n"}),
        ("{% for row in rows %}{{ row.x }}{{ loop.index }}{% endfor %}{{ row.y }}", {"rows", "row.y"}),
        ("{% set a = input.b %}{{ a.c }}", {"input.b"}),
        ("{% with a = b.c %}{{ a.d }}{% endwith %}{{ a.e }}", {"b.c", "a.e"}),
        ("{{ a.b | default(c.d) }}{{ e.f is defined }}", {"a.b", "c.d", "e.f"}),
        ("no names", set()),
    ],
)
def test_names_are_the_paths_that_are_read(source: str, names: set[str]) -> None:
    assert {".".join(path) for path in compiled(source).names} == names


@pytest.mark.parametrize(
    "source",
    [
        "{{ input.clear() }}",
        "{{ input.update({'team': 1}) }}",
        "{{ rows.append(1) }}",
        "{{ rows.pop() }}",
        "{{ input.map.pop('é') }}",
        "{% set input.team = 1 %}",
        "{{ input._value.clear() }}",
        "{{ rows | map(attribute='_value') | list }}",
        "{{ input['_va' ~ 'lue'] }}{{ rows['_value'] }}{{ rows.index(1) }}",
    ],
)
def test_no_template_reaches_the_objects_behind_the_values(source: str) -> None:
    before = copy.deepcopy(NAMES)
    template = compile_template(source)
    if isinstance(template, Template):
        assert isinstance(template.render(NAMES), RenderFailure)
    assert before == NAMES


def test_a_failure_shows_no_value() -> None:
    secret = {"input": {"key": "s3cret", "n": 424242}}
    for use in ("input.key + 1", "input.n / 0", "input.n ** 99999", "input.key.x.y", "input.key | sum"):
        reason = failure(f"{{{{ {use} }}}}", secret).reason
        assert "s3cret" not in reason
        assert "424242" not in reason


def test_a_failure_names_the_piece_of_the_template_and_its_line() -> None:
    assert failure("é\n{{ 'a' + input.price }}").reason == "'a' + input.price cannot be evaluated (line 2)"


def test_threads_share_a_template() -> None:
    template = compiled("{% for i in range(n) %}{% set x = i %}{{ x }}{% endfor %}")
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda n: template.render({"n": n}), range(64)))
    assert texts == ["".join(map(str, range(n))) for n in range(64)]


def test_importing_is_silent() -> None:
    code = "import stepladder.workflows.templates"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
WORDS = r"""
{{ }} {% %} {%- -%} {# #} a a.b a[0] a['c'] b 1 2.5 'x' [1,2] {'k':a} ( ) , | + - * / // % ** ~ == < in not and or is
defined default('z') upper join(',') length sort tojson(2) round(1) first last replace('x','y') map(attribute='a') sum
int if else endif for endfor set = range(3) a.upper() a.items() a[1:]
"""
words = st.sampled_from([*WORDS.split(), "\n"])


@given(st.text(max_size=60), documents)
def test_any_text_is_a_template_or_a_refusal(source: str, document: Any) -> None:
    template = compile_template(source)
    if isinstance(template, Template):
        assert isinstance(template.render({"a": document}), str | RenderFailure)
    else:
        assert template.reason
        assert template.line >= 1


@given(st.lists(words, max_size=14).map(" ".join), documents)
def test_anything_like_a_template_has_a_text_or_a_failure(source: str, document: Any) -> None:
    for shape in (source, "{{ " + source + " }}", "{% if " + source + " %}x{% endif %}"):
        template = compile_template(shape)
        if isinstance(template, Template):
            assert isinstance(template.render({"a": document, "b": [document]}), str | RenderFailure)


@given(st.sampled_from(["a | {} ", "a is {}", "a.{}()"]), st.data(), documents, documents)
def test_every_filter_test_and_method_takes_any_value(
    shape: str, data: st.DataObject, document: Any, other: Any
) -> None:
    tables = {"a | {} ": FILTERS, "a is {}": TESTS, "a.{}()": METHODS}
    name = data.draw(st.sampled_from(sorted(tables[shape])))
    call = shape.format(name)
    for source in (call, call.removesuffix("()") + "(b)", call.removesuffix("()") + "(b, b)"):
        template = compile_template("{{ " + source + " }}")
        if isinstance(template, Template):
            assert isinstance(template.render({"a": document, "b": other}), str | RenderFailure)


@given(documents)
def test_a_printed_value_is_json_that_reads_back(document: Any) -> None:
    result = compiled("{{ a | tojson }}").render({"a": document})
    if isinstance(result, str):
        assert json.loads(result) == document
