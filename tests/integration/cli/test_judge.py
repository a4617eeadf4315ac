"""``stepladder judge``: a verdict for every line, offline; and a regression set for CI."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.specimens import PATH, SPECIMENS

from .conftest import COMMAND

if TYPE_CHECKING:
    from .conftest import Done, Shell

NOWHERE = {"STEPLADDER_DATABASE_URL": "postgresql://127.0.0.1:1/none", "STEPLADDER_ENGINE_URL": "http://127.0.0.1:1/v1"}
RULES = """
import stepladder

@stepladder.rule("kind")
def kind(output, *, input, turns, tools):
    print("looking at", output)
    return None if output["word"] == input["word"] else "must be the word given"
"""


def answering(content: str, **fields: Any) -> str:
    """A line whose engine said ``content``."""
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    line = {"id": "a", "schema": {"type": "object"}, "response": {"status": 200, "body": body}} | fields
    return json.dumps(line)


def judged(shell: Shell, lines: list[str], *words: str, **variables: str | None) -> tuple[Done, list[dict[str, Any]]]:
    shell.write("lines.jsonl", "\n".join(lines))
    done = shell.run("judge", "lines.jsonl", *words, **NOWHERE | variables)
    return done, [json.loads(line) for line in done.out.splitlines()]


def test_every_specimen_gets_its_verdict_offline(shell: Shell) -> None:
    done = shell.run("judge", str(PATH), "--expect", **NOWHERE)
    verdicts = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, f"All {len(SPECIMENS)} verdicts match\n")
    assert [verdict["id"] for verdict in verdicts] == [specimen["id"] for specimen in SPECIMENS]


def test_a_verdict_has_its_fields_in_order_and_readable_text(shell: Shell) -> None:
    done, [verdict] = judged(shell, [answering('{"stadt": "Zürich ☃"}')])
    assert list(verdict) == ["id", "outcome", "cause", "rungs", "errors", "output", "observed"]
    assert "Zürich ☃" in done.out
    assert (done.code, done.err, verdict["output"]) == (0, "", {"stadt": "Zürich ☃"})


def test_standard_input_is_judged_line_by_line_as_it_comes() -> None:
    command = [str(COMMAND), "judge", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for n in range(2):  # the first verdict is there before the second line is written
            process.stdin.write(answering("{}", id=n) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == n
        process.stdin.close()
        assert process.wait(60) == 0


def test_an_unusable_line_is_named_and_the_others_are_judged(shell: Shell) -> None:
    lines = [answering("{}", id=1), "garbage", "", answering("{}", id=4, response={"transport": "tired"})]
    done, verdicts = judged(shell, [*lines, answering("[]", id=5)])
    assert [(verdict["id"], verdict["outcome"]) for verdict in verdicts] == [(1, "valid"), (5, "schema_violation")]
    assert done.code == 2
    assert "error: line 2: this is not JSON" in done.err
    assert "error: line 4, /response: `tired` is not a cause of `transport`; causes are: connect, timeout" in done.err

    done, verdicts = judged(shell, [*lines, answering("[]", id=5)], "--json")
    said = [json.loads(line) for line in done.err.splitlines()]
    assert [(one["line"], one["pointer"]) for one in said] == [(2, ""), (4, "/response")]


def test_a_regression_set_fails_with_each_difference_named(shell: Shell) -> None:
    right = answering("{}", id="right", expect={"outcome": "valid"})
    wrong = answering("{}", id="wrong", expect={"outcome": "empty", "rungs": {"parse": "failed"}, "output": {}})
    done, verdicts = judged(shell, [right, wrong, answering("{}")], "--expect")
    assert (done.code, len(verdicts)) == (1, 3)
    rows = [line.split() for line in done.err.splitlines()]
    assert rows[1:3] == [
        ["2", "wrong", "outcome", '"empty"', '"valid"'],
        ["2", "wrong", "rungs.parse", '"failed"', '"passed"'],
    ]
    assert done.err.endswith("1 of 2 verdicts differ; lines without `expect`: 1\n")
    assert judged(shell, [right, wrong])[0].code == 0

    done, _ = judged(shell, [right, wrong], "--expect", "--json")
    said = [json.loads(line) for line in done.err.splitlines()]
    assert said == [
        {"line": 2, "id": "wrong", "field": "outcome", "expected": "empty", "got": "valid"},
        {"line": 2, "id": "wrong", "field": "rungs.parse", "expected": "failed", "got": "passed"},
        {"compared": 2, "differing": 1, "without_expect": 0, "faults": 0},
    ]


def test_a_comparison_of_nothing_is_no_success(shell: Shell) -> None:
    done, verdicts = judged(shell, [answering("{}")], "--expect")
    assert (done.code, len(verdicts)) == (2, 1)
    assert "no line of lines.jsonl has `expect`" in done.err
    done, verdicts = judged(shell, [answering("{}", expect={"outcom": "valid"})], "--expect")
    assert (done.code, len(verdicts)) == (2, 1)
    assert "line 1, /expect/outcom: there is no field `outcom` here" in done.err


def test_a_registered_rule_is_called_and_its_output_kept_apart(shell: Shell) -> None:
    shell.write("rules.py", RULES)
    rules = [{"id": "kind", "call": "kind", "pointer": "/word"}]
    lines = [answering('{"word": "a"}', rules=rules, input={"word": word}) for word in ("a", "b")]
    done, verdicts = judged(shell, lines, "--app", "rules.py")
    assert [(verdict["outcome"], verdict["cause"]) for verdict in verdicts] == [("valid", None), ("semantic", "kind")]
    assert verdicts[1]["errors"][0]["reason"] == "must be the word given"
    assert (done.code, done.err.count("looking at")) == (0, 2)
    done, verdicts = judged(shell, lines, STEPLADDER_APP=None)
    assert (done.code, verdicts) == (2, [])
    assert "line 1, /rules/0/call: there is no rule `kind`" in done.err


@pytest.mark.parametrize("file", ["nowhere.jsonl", "."])
def test_a_file_that_cannot_be_read(shell: Shell, file: str) -> None:
    done = shell.run("judge", file)
    assert (done.code, done.out) == (2, "")
    assert f"{file} cannot be read" in done.err
