from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.mutations import Mutant, Mutations

SOURCE = Path(__file__).parents[3] / "src" / "stepladder"
FILES = ["validation/termination.py", "validation/engine_errors.py", "validation/completion.py", "workflows/retry.py"]


def mutants_of(source: str, enums: dict[str, list[str]] | None = None) -> list[str]:
    """Every mutant as the whole changed program, on one line."""
    mutations = Mutations("x.py", source, enums or {})
    return [ast.unparse(mutations.tree).replace("\n", "; ") for _ in mutations]


@pytest.mark.parametrize("file", FILES)
def test_each_mutant_is_one_change_that_compiles_and_is_undone(file: str) -> None:
    mutations = Mutations(file, (SOURCE / file).read_text(), {"Cause": ["BUDGET", "RUNAWAY"]})
    original = ast.dump(mutations.tree)
    seen: list[Mutant] = []
    for mutant in mutations:
        assert ast.dump(mutations.tree) != original, mutant
        compile(mutations.tree, file, "exec")
        seen.append(mutant)
    assert ast.dump(mutations.tree) == original
    assert len(seen) > 100


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < 1", ["x = a <= 1", "x = a >= 1", "x = a < 2", "x = a < 0"]),
        ("x = a is not None", ["x = a is None"]),
        ("x = a and b", ["x = a or b", "x = b", "x = a"]),
        ("x = not a", ["x = a"]),
        ("x = a + b", ["x = a - b"]),
        ("x = True", ["x = False"]),
        ("x = 'word'", ["x = 'XXword'"]),
        ("x = 'a sentence'", []),
        ("x = f'{a} of it'", []),
        ("raise ValueError('word')", []),
        ("'''A docstring.'''", []),
        ("x: int = a", []),
        ("x = '{}'", ["x = '}'", "x = '{'"]),
        ("x = {1: a, 5: b}", [
            *("x = {2: a, 5: b}", "x = {0: a, 5: b}", "x = {1: a, 6: b}", "x = {1: a, 4: b}"),
            *("x = {5: b}", "x = {1: a}")]),
        ("x = {'a', 'b'}", ["x = {'XXa', 'b'}", "x = {'b'}", "x = {'a', 'XXb'}", "x = {'a'}"]),
        ("x = Cause.A", ["x = Cause.B"]),
        ("x = Cause.B", ["x = Cause.A"]),
        ("x = f(k=a)", ["x = f()"]),
        ("x = a[1:]", ["x = a", "x = a[2:]", "x = a[0:]"]),
        ("x = a[1]", ["x = a[2]", "x = a[0]"]),
        ("x += a", ["x -= a", "pass"]),
        ("if a: f()", ["if not a:;     f()", "if a:;     pass"]),
        ("x = re.compile('a|b')", ["x = re.compile('b')", "x = re.compile('a')"]),
        ("x = re.compile('(?:a|[|]|b)c')", [
            "x = re.compile('(?:[|]|b)c')", "x = re.compile('(?:a|b)c')", "x = re.compile('(?:a|[|])c')"]),
        (r"x = re.compile('a\\|b{40}')", [r"x = re.compile('a\\|b{41}')", r"x = re.compile('a\\|b{39}')"]),
        ("def f(): return a", ["def f():;     return None"]),
        ("match a:\n case 1 | 2 if b: f()\n case _: g()", [
            "match a:;     case _:;         g()",
            "match a:;     case 2 if b:;         f();     case _:;         g()",
            "match a:;     case 1 if b:;         f();     case _:;         g()",
            "match a:;     case 1 | 2:;         f();     case _:;         g()",
            "match a:;     case 1 | 2 if b:;         pass;     case _:;         g()",
            "match a:;     case 1 | 2 if b:;         f()",
            "match a:;     case 1 | 2 if b:;         f();     case _:;         pass",
        ]),
        ("match a:\n case _: assert_never(a)", []),
        ("if TYPE_CHECKING:\n import x", []),
    ],
)  # fmt: skip
def test_what_is_changed(source: str, expected: list[str]) -> None:
    assert mutants_of(source, {"Cause": ["A", "B"]}) == expected
