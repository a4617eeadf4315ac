"""A job that calls another, run here and now, and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Shell

CHILD = """
name: echo
version: 1
start: hold
states:
  hold: {wait: {signal: word}, next: {go: done}}
  done: {end: succeeded, result: signals.hold.action}
"""
PARENT = """
name: caller
version: 1
start: go
states:
  go: {call: echo, next: {ok: done, error: broken}}
  done: {end: succeeded, result: calls.go}
  broken: {end: failed, result: errors.go}
"""


def test_a_job_and_the_one_that_it_calls_run_in_one_process_and_are_shown_together(shell: Shell) -> None:
    shell.write("echo.yaml", CHILD)
    shell.write("caller.yaml", PARENT)
    refused = shell.run("run", "caller.yaml", "--also", "echo.yaml", "--signal", 'nobody={"action": "go"}')
    assert (refused.code, "never waits for it" in refused.err) == (2, True)
    waits = shell.run("run", "caller.yaml", "--also", "echo.yaml", "--json")
    assert (waits.code, waits.json["status"], waits.json["waiting_for"]) == (0, "waiting", "children")
    assert f"stepladder jobs --parent {waits.json['id']}" in waits.err
    done = shell.run("run", "--job", waits.json["id"], "--signal", 'word={"action": "go"}', "--json")
    assert (done.code, done.json["result"]) == (0, "go")
    shown = shell.run("show", done.json["id"])
    [child] = shell.run("jobs", "--parent", done.json["id"], "--json").json["jobs"]
    assert f"called 1. echo 1  job {child['id']}" in shown.out
    assert f"called by job {done.json['id']}" in shell.run("show", child["id"]).out
    [record] = shell.run("show", done.json["id"], "--json").json["children"]
    assert (record["id"], record["index"], record["status"]) == (child["id"], 1, "succeeded")
