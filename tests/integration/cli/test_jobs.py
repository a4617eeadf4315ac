"""``stepladder jobs``: filters, pages, and a table that fits."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Shell


@pytest.fixture(scope="module")
def three(shell: Shell) -> list[str]:
    """Jobs of a workflow with a long name, oldest first."""
    name = "a-name-that-is-so-long-that-no-table-of-a-hundred-columns-has-room-for-it"
    document = f"name: {name}\nversion: 1\nstart: done\nstates: {{done: {{end: succeeded}}}}\n"
    assert shell.run("publish", shell.write("long.yaml", document)).code == 0
    words = ("submit", name, "--metadata")
    return [shell.run(*words, f"batch={batch}").out.strip() for batch in ("1", "true", "x")]


def test_the_table_fits_a_hundred_columns_and_keeps_every_id_whole(shell: Shell, three: list[str]) -> None:
    done = shell.run("jobs")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert [line.split()[0] for line in lines[1:4]] == three[::-1]
    assert "…" in lines[1]


def test_pages_follow_each_other_while_jobs_arrive(shell: Shell, three: list[str]) -> None:
    workflow = ("--workflow", shell.run("jobs", "--limit", "1", "--json").json["jobs"][0]["workflow"])
    first = shell.run("jobs", *workflow, "--limit", "2", "--json").json
    assert [job["id"] for job in first["jobs"]] == three[:0:-1]
    assert shell.run("submit", workflow[1]).code == 0
    rest = shell.run("jobs", *workflow, "--limit", "2", "--json", "--cursor", first["next_cursor"]).json
    assert [job["id"] for job in rest["jobs"]] == three[:1]
    assert rest["next_cursor"] is None


def test_filters_are_passed_on(shell: Shell, three: list[str], waiting_job: str) -> None:
    def found(*words: str) -> list[str]:
        done = shell.ok("jobs", *words, "--limit", "1000", "--json")
        return [job["id"] for job in done.json["jobs"]]

    assert found("--metadata", "batch=1") == [three[0]]
    assert waiting_job in found("--status", "waiting", "--outcome", "semantic")
    assert found("--failure", "deadline", "--created-before", "2001-01-01") == []
    assert set(three) <= set(found("--created-after", "2001-01-01T00:00:00Z"))
    assert shell.ok("jobs", "--failure", "deadline").out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cursor", "from elsewhere"), "is not a job id"),
        (("--cursor", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"), "there is no job"),
        (("--created-after", "yesterday"), "a time such as"),
        (("--status", "lost"), "succeeded"),
        (("--limit", "0"), "1"),
    ],
)
def test_a_bad_filter_lists_the_valid_ones(shell: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in shell.refused("jobs", *words)


HEAVY = ("sqlalchemy", "alembic", "celery", "fastapi", "httpx", "aiohttp", "jinja2", "jsonschema")


def test_listing_jobs_imports_no_heavy_package() -> None:
    """These take ten times as long to load as all that the command needs."""
    parts = "main, session, view, history, watch"
    modules = f"import sys; from stepladder.cli import {parts}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", modules], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
