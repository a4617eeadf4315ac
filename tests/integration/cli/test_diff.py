"""``stepladder diff``: within a hundred columns, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Shell

LONG = """
name: a-name-so-long-that-no-table-of-a-hundred-columns-has-room-for-it-beside-a-job
version: 1
start: sum
states:
  sum:
    ask: "Sum up."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules: [{id: must-be-the-total-that-somebody-expects-of-it, check: "output.total == 36", reason: must be 36}]
    retry: {attempts: 2}
    next: done
  done: {end: succeeded, result: {total: turns.sum.total, note: "'text ' + 'that goes on and on'"}}
"""


def test_a_job_and_its_fork_are_compared(shell: Shell) -> None:
    shell.write("long-diff.yaml", LONG)
    was = shell.run("run", "long-diff.yaml", "--json").json["id"]
    rule = "states.sum.rules.0.check=output.total == 35"
    now = shell.run("replay", was, "--mode", "fork", "--set", rule, "--json").json["id"]
    assert shell.run("run", "--job", now).code == 0
    done = shell.run("diff", was, now)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 100 for line in done.out.splitlines()), done.out
    assert was in done.out
    assert now in done.out
    assert "~ /total  36 → 35" in done.out
    assert "2→1" in done.out
    found = shell.run("diff", was, now, "--json").json
    assert [(one["pointer"], one["was"], one["now"]) for one in found["result"]] == [("/total", 36, 35)]
    assert found["visits"][0]["differs"] == ["attempts", "output"]


def test_a_job_equals_itself_and_unknown_jobs_are_reported(shell: Shell, waiting_job: str) -> None:
    same = shell.run("diff", waiting_job, waiting_job)
    assert "both took the same path to the same end" in same.out
    nobody = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
    done = shell.run("diff", waiting_job, nobody)
    assert (done.code, done.out) == (2, "")
    assert f"there is no job {nobody}" in done.err
