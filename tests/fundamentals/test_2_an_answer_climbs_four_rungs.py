"""Chapter 2. Every answer gets exactly one outcome, from the first rung on which it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.testing import Answer, Fault, Raw, ScriptedEngine, run

if TYPE_CHECKING:
    from stepladder.testing import Line

SUM = """
name: sum
version: 1
input: {type: object, properties: {a: {type: integer}, b: {type: integer}}, required: [a, b]}
start: add
states:
  add:
    ask: "What is {{ input.a }} and {{ input.b }}?"
    output:
      type: object
      properties: {total: {type: integer, minimum: 0, maximum: 1000}}
      required: [total]
      additionalProperties: false
    rules:
      - {id: arithmetic, check: "output.total == input.a + input.b", pointer: /total, reason: "must be the sum"}
    max_completion_tokens: 64
    next: done
  done: {end: succeeded, result: {total: "turns.add.total"}}
"""
RIGHT = {"total": 5}


@pytest.mark.parametrize(
    ("first", "outcome", "cause", "rungs"),
    [
        # Nothing whole arrived: no rung is reached, and the model is not to blame.
        (Fault("reset_mid"), "transport", "disconnected", "...."),
        (Raw(b"<html>Bad Gateway</html>", status=502), "transport", "http_5xx", "...."),
        # Rung 1, termination: cut off. It is thrown away, never repaired, and not even parsed.
        (Answer('{"total": 5', finish_reason="length", completion_tokens=64), "truncation", "budget", "x..."),
        # Rung 2, parse: exactly one JSON document.
        (Answer(""), "empty", "no_content", "+x.."),
        (Answer('```json\n{"total": 5}\n```'), "parse_failure", "markdown_fence", "+x.."),
        # Rung 3, schema: the engine may have ignored a keyword; the ladder does not.
        (Answer('{"total": "5"}'), "schema_violation", "type", "++x."),
        # Rung 4, rules: perfect JSON, and wrong.
        (Answer('{"total": 6}'), "semantic", "arithmetic", "+++x"),
    ],
)
async def test_one_outcome_by_the_first_rung_that_fails(
    database_url: str, first: Line, outcome: str, cause: str, rungs: str
) -> None:
    with ScriptedEngine([first, RIGHT]) as engine:
        ran = await run(SUM, {"a": 2, "b": 3}, engine_url=engine.url, database_url=database_url)
    failed, mended = ran.turns[0].attempts
    assert (failed.outcome, failed.cause) == (outcome, cause)
    assert failed.rungs is not None
    marks = {"passed": "+", "failed": "x", "not_reached": "."}
    climbed = (failed.rungs.termination, failed.rungs.parse, failed.rungs.schema, failed.rungs.semantic)
    assert "".join(marks[state] for state in climbed) == rungs
    assert mended.outcome == "valid"
    assert (ran.job.status, ran.job.result) == ("succeeded", RIGHT)
