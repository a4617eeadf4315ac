"""What the pages say is run: every document compiles, every piece of Python runs, every command and file is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stepladder.cli.main import app
from stepladder.judge.expectations import differences, read_expect, told
from stepladder.judge.specimens import Case, Specimens
from stepladder.lint.compile import compile_workflow
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.specimen import Expect
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.sdk import kit
from stepladder.wiring.settings import PREFIX, Settings
from stepladder.workflows.load import Loaded, load_document

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, text in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL), 1):
            found.append(pytest.param(text, id=f"{page.name}-{number}"))
    return found


def commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    return dict(getattr(group, "commands", {}))


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_document_compiles(text: str) -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]}
    tools = {"usage_query": Tool("usage_query", Effect.READ, parameters, dict)}
    loaded = load_document(text)
    assert isinstance(loaded, Loaded), loaded
    compiled = compile_workflow(loaded.document, Kit(tools, {}))
    assert compiled.findings == (), [str(finding) for finding in compiled.findings]


@pytest.mark.parametrize("text", blocks("python"))
def test_every_piece_of_python_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_tools", {})  # what a page registers is its own
    monkeypatch.setattr(kit, "_rules", {})
    exec(compile(text, "page", "exec"), {"__name__": "page"})  # noqa: S102 -- that is the test


@pytest.mark.parametrize("text", blocks("jsonl"))
def test_every_line_for_judge_gets_the_verdict_that_it_expects(text: str) -> None:
    reader = Specimens(Kit())
    for line in text.splitlines():
        case = reader.read(line.encode())
        assert isinstance(case, Case), case
        expect = read_expect(case.expect)
        assert isinstance(expect, Expect), expect
        assert differences(expect, told(case.id, case.judge())) == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_flag_exists(page: Path) -> None:
    known = commands()
    for name, rest in re.findall(r"(?:`|\$ )stepladder ([a-z][a-z-]*)([^`\n|]*)", page.read_text()):
        assert name in known, f"{page.name}: stepladder {name}"
        if name == "psql":  # what follows it is psql's own
            continue
        command = known[name]
        parts = getattr(command, "commands", {})  # of a command that is a group of others
        if parts:
            part = rest.split()[0]
            assert part in parts, f"{page.name}: stepladder {name} {part}"
            command = parts[part]
        flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert set(re.findall(r"--[a-z-]+", rest)) <= flags, f"{page.name}: stepladder {name}{rest}"


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert {name for name in commands() if f"`stepladder {name}" not in text} == set()


def test_the_readme_names_every_outcome_once_in_its_table() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(row for row in rows if row in list(Outcome)) == sorted(Outcome)


def test_the_readme_names_every_setting() -> None:
    text = (ROOT / "README.md").read_text()
    assert {name for name in Settings.model_fields if f"`{PREFIX}{name.upper()}`" not in text} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_every_module_named_is_there(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
    for module in re.findall(r"`((?:[a-z]+/)+[a-z_]+\.py)", text):
        assert (ROOT / module).exists() or (ROOT / "src/stepladder" / module).exists(), f"{page.name}: {module}"


def test_the_scripts_can_be_run() -> None:
    for script in ("scripts/demo", "scripts/test", "scripts/suites", "scripts/bench", "scripts/plans", ".ci/run"):
        assert (ROOT / script).stat().st_mode & 0o111, script


def test_the_architecture_page_has_each_package_with_its_own_sentence() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    for path in (ROOT / "src/stepladder").glob("*/__init__.py"):
        sentence = path.read_text().split('"""')[1].split("\n")[0].replace("``", "`")
        assert f"| `{path.parent.name}` | {sentence} |" in page
