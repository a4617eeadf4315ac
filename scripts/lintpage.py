"""The tables of ``docs/lint.md``, made of the code. Run by ``scripts/lintpage``, which writes them into the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.lint.backends.tables import FORMS, Backend, Verdict
from stepladder.schemas.codes import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.lint.backends.tables import Verdicts

PAGE = Path(__file__).parents[1] / "docs" / "lint.md"
BETWEEN = (
    "<!-- {name}: made by scripts/lintpage out of the code, and compared with it by a test -->\n{text}<!-- end -->"
)


def codes() -> Iterator[str]:
    """A table for each group of codes."""
    for title, group in GROUPS.items():
        yield f"\n### {title}\n\n| code | severity | what | instead |\n|---|---|---|---|\n"
        for name, code in group.items():
            severity = " or ".join(code.severities)
            yield f"| `{name}` | {severity} | {code.what} | {code.instead} |\n"
    yield "\n"


def backends() -> Iterator[str]:
    """The forms that are not enforced by every backend in every version."""
    yield f"\n| form | {' | '.join(Backend)} |\n|---|{'---|' * len(Backend)}\n"
    for form, said in FORMS.items():
        if any(set(verdicts.values()) != {Verdict.ENFORCED} for verdicts in said.values()):
            name = f"`{form}`" if form != "format" else "`format` of any other name"
            yield f"| {name} | {' | '.join(_words(one) for one in said.values())} |\n"
    yield "\n"


def _words(verdicts: Verdicts) -> str:
    first, *later = sorted(verdicts)
    return "; since ".join([verdicts[first], *(f"{'.'.join(map(str, at))} {verdicts[at]}" for at in later)])


def page(before: str) -> str:
    """The page with its tables made anew."""
    for name, lines in (("codes", codes()), ("backends", backends())):
        start, end = before.index(f"<!-- {name}:"), before.index("<!-- end -->", before.index(f"<!-- {name}:"))
        made = BETWEEN.format(name=name, text="".join(lines)).removesuffix("<!-- end -->")
        before = before[:start] + made + before[end:]
    return before


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
