"""``stepladder workflows``, ``retire``, ``unretire``, and ``pause`` and ``unpause`` of a whole workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Shell

DOCUMENT = """
name: switched
version: {version}
start: hold
states:
  hold: {{wait: {{signal: go}}, next: {{go: done}}}}
  done: {{end: succeeded}}
"""
SECOND = """
name: second
version: 1
start: hold
states:
  hold: {wait: {signal: go, by: other, scopes: ["refund:approve"]}, next: {go: done}}
  done: {end: succeeded}
"""


@pytest.fixture
def published(shell: Shell) -> Shell:
    for version in (1, 2):
        shell.write(f"switched{version}.yaml", DOCUMENT.format(version=version))
        assert shell.run("publish", f"switched{version}.yaml").code == 0
    return shell


def test_a_retired_version_is_refused(published: Shell) -> None:
    done = published.run("retire", "switched", "2", "--json")
    assert (done.code, done.json["workflows"][0]["retired"]) == (0, True)
    assert "version 2 of workflow switched is retired; the current one is 1" in published.refused(
        "submit", "switched", "--version", "2"
    )
    by_document = published.run("submit", "switched2.yaml")
    assert by_document.code == 2
    assert published.run("submit", "switched", "--json").json["version"] == 1
    assert "is retired" in published.refused("run", "switched2.yaml")
    assert published.run("unretire", "switched", "2").code == 0
    assert published.run("submit", "switched", "--json").json["version"] == 2
    again = published.run("unretire", "switched", "2")
    assert (again.code, "nothing changed" in again.err) == (0, True)


def test_a_workflow_is_paused_and_unpaused(published: Shell) -> None:
    assert published.run("pause", "--workflow", "switched").code == 0
    listed = published.run("workflows")
    assert "switched 2: published" in listed.out
    assert "paused by local" in listed.out
    job = published.run("submit", "switched", "--json").json
    assert (job["status"], job["workflow_paused"]) == ("queued", True)
    shown = published.run("show", job["id"])
    assert "stepladder unpause --workflow switched" in shown.out
    assert "stepladder unpause --workflow switched" in published.run("unpause", job["id"]).err
    assert published.run("unpause", "--workflow", "switched").code == 0
    assert published.run("run", "--job", job["id"], "--signal", 'go={"action": "go"}').code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pause",), "name a job or a workflow"),
        (("pause", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "--workflow", "switched"), "name a job or a workflow"),
        (("pause", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "--version", "1"), "--version"),
        (("pause", "--workflow", "nobody"), "no workflow nobody"),
        (("retire", "switched", "7"), "has no version 7; it has 1, 2"),
    ],
)
def test_bad_usage_is_explained(published: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in published.refused(*words)


def test_a_wait_for_another_sender_refuses_the_command_line(shell: Shell) -> None:
    shell.write("second.yaml", SECOND)
    published = shell.run("publish", "second.yaml")
    assert (published.code, "nobody_else" in published.err or "second principal" in published.err) == (0, True)
    job = shell.run("run", "second.yaml", "--json").json
    assert (job["status"], job["wait"]["by"], job["wait"]["scopes"]) == ("waiting", "other", ["refund:approve"])
    shown = shell.run("show", job["id"]).out
    assert "someone other than local" in shown
    assert "refund:approve" in shown
    assert "must not come from local" in shell.refused("signal", job["id"], "go", "--data", '{"action": "go"}')
    assert shell.rows("SELECT count(*) FROM signals WHERE job_id = %s", job["id"]) == [(0,)]
