"""What a verdict costs: one answer of 700 bytes through all four rungs, and the same where `jsonschema` is the third.

Run by ``scripts/bench``. Both ladders are the same code but for that one rung, so that the ratio is the rung's alone:
both read bodies and JSON the same fast way, and both validators check formats. Exit code 1 if the two judge otherwise,
or if ours is not ten times as fast where there is no rule.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import jsonschema

from benchmarks.timing import measured
from stepladder.lint.compile import compile_workflow
from stepladder.schemas.answer import Received, Violation
from stepladder.schemas.outcomes import Outcome
from stepladder.validation.expressions import Expression, compile_expression
from stepladder.validation.ladder import Criteria, judge
from stepladder.validation.parse import Parsed, parse
from stepladder.validation.schema import Schema, compile_schema
from stepladder.validation.semantic import Rule, broken
from stepladder.validation.termination import receive
from stepladder.workflows.events import Judged
from stepladder.workflows.load import load_document
from support.machines import KIT, accepted, document, loaded, play, rejected

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_RATIO = 10
RECORDS = 12
PIECE = 3
"""Characters in one event of the streamed answer: about a token."""

RULE = "output.total == sum(output.lines.map(line, line.quantity * line.price))"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["book", "ask", "refuse"]},
        "invoice": {"type": "string", "pattern": "^INV-[0-9]{4}-[0-9]{4}$"},
        "issued": {"type": "string", "format": "date"},
        "currency": {"type": "string", "minLength": 3, "maxLength": 3},
        "customer": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 60},
                "email": {"type": "string", "format": "email"},
            },
            "required": ["name", "email"],
            "additionalProperties": False,
        },
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": 40,
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "pattern": "^[A-Z]-[0-9]{3}$"},
                    "quantity": {"type": "integer", "minimum": 1, "maximum": 1000},
                    "price": {"type": "number", "minimum": 0, "maximum": 100000},
                },
                "required": ["sku", "quantity", "price"],
                "additionalProperties": False,
            },
        },
        "total": {"type": "number", "minimum": 0},
    },
    "required": ["action", "invoice", "issued", "currency", "customer", "lines", "total"],
    "additionalProperties": False,
}

MACHINE = document(
    """
ask:
  ask: "Read the invoice {{ input.text }}"
  output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
  rules: [{id: positive, check: "output.total > 0", pointer: /total, reason: must be more than 0}]
  next: done
done: {end: succeeded, result: {total: "turns.ask.total"}}
"""
)


def invoice() -> dict[str, Any]:
    amounts = [(number, 2.5 * number) for number in range(1, RECORDS + 1)]
    return {
        "action": "book",
        "invoice": "INV-2026-0042",
        "issued": "2026-03-14",
        "currency": "EUR",
        "customer": {"name": "Café Métropole", "email": "accounts@metropole.example"},
        "lines": [{"sku": f"A-{n:03}", "quantity": n, "price": price} for n, price in amounts],
        "total": sum(n * price for n, price in amounts),
    }


def whole(content: str) -> bytes:
    """The body of a chat completion, as vLLM writes it."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, "tool_calls": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    usage = {"prompt_tokens": 310, "total_tokens": 680, "completion_tokens": 370, "prompt_tokens_details": None}
    head = {"id": "chatcmpl-8d1c", "object": "chat.completion", "created": 1767225600, "model": "Qwen/Qwen3-8B"}
    return _json({**head, "choices": [choice], "usage": usage})


def streamed(content: str) -> bytes:
    """The same answer in events."""
    pieces = [content[start : start + PIECE] for start in range(0, len(content), PIECE)]
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]
    head = {"id": "chatcmpl-8d1c", "object": "chat.completion.chunk", "created": 1767225600, "model": "Qwen/Qwen3-8B"}
    last = {"index": 0, "delta": {"content": ""}, "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas]
    events: list[dict[str, Any]] = [{**head, "choices": [choice]} for choice in (*choices, last)]
    events.append({**head, "choices": [], "usage": {"prompt_tokens": 310, "completion_tokens": 370}})
    return b"".join(b"data: " + _json(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Bench:
    """The answer, its ladders, and the pieces that they are made of."""

    content: bytes
    body: Received
    events: Received
    plain: Criteria
    ruled: Criteria
    reference: Criteria
    ruled_reference: Criteria

    def judged(self, arrival: Received, criteria: Criteria) -> Callable[[], object]:
        return lambda: judge(arrival, criteria, {})

    def pieces(self) -> dict[str, Callable[[], object]]:
        parsed = parse(self.content)
        assert isinstance(parsed, Parsed)
        value, schema = parsed.value, self.plain.schema
        assert isinstance(schema, Schema)
        return {
            "termination: the HTTP body": lambda: receive(self.body),
            "parse: the content": lambda: parse(self.content),
            "schema": lambda: schema.violations(value),
            "semantic: one CEL rule": lambda: broken(self.ruled.rules, value, {}),
        }


def bench() -> Bench:
    content = json.dumps(invoice(), ensure_ascii=False, separators=(",", ":"))
    schema, check = compile_schema(SCHEMA), compile_expression(RULE)
    assert isinstance(schema, Schema)
    assert isinstance(check, Expression)
    known = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = cast("Any", jsonschema.Draft202012Validator(SCHEMA, format_checker=known))
    reference = replace(schema, _validator=validator)  # it has the two methods that the rung calls
    rules = (Rule("total", check, pointer="/total", reason="must be the sum of the lines"),)
    return Bench(
        content=content.encode(),
        body=Received(200, whole(content)),
        events=Received(200, streamed(content), streamed=True),
        plain=Criteria(schema),
        ruled=Criteria(schema, rules),
        reference=Criteria(reference),
        ruled_reference=Criteria(reference, rules),
    )


def differences(case: Bench) -> list[str]:
    """On which answers the two ladders do not give the same verdict: this one, and others that fall from each rung."""
    text = case.content.decode()
    answers = {
        "the answer": text,
        "a total that is wrong": text.replace('"total":', '"total":1'),
        "a line without its price": text.replace('"price":2.5', '"cost":2.5'),
        "a date that is none": text.replace("2026-03-14", "2026-02-30"),
        "a name twice": text.replace('"currency"', '"issued"'),
        "half of it": text[: len(text) // 2],
    }
    return [name for name, content in answers.items() if not _same(case, content)]


def _same(case: Bench, content: str) -> bool:
    arrival, reference = Received(200, whole(content)), case.ruled_reference
    ours = judge(arrival, case.ruled, {})
    if ours.outcome is not Outcome.SCHEMA_VIOLATION:
        return judge(arrival, reference, {}) == ours
    # The words of a violation are made from the errors of our own library, so that only the answer can be compared.
    assert isinstance(reference.schema, Schema)
    return not reference.schema._validator.is_valid(json.loads(content))


def beside() -> dict[str, Callable[[], object]]:
    """What else a turn costs this process, in the machine."""
    begun = play(MACHINE, value={"text": "x"})
    begun.claim()
    read, job, now = loaded(MACHINE), begun.job, begun.now

    def step(event: Judged) -> Callable[[], object]:
        def run() -> object:
            again = replace(begun, job=job, now=now, steps=[])
            return again.send(event)

        return run

    wrong = rejected(Outcome.SEMANTIC, "positive", content=b"{}", errors=(Violation("/total", "must be more", "p"),))
    assert step(Judged(wrong))() != step(Judged(accepted({"total": 3})))()
    return {
        "advance: an answer moves the machine on": step(Judged(accepted({"total": 3}))),
        "advance: an answer fails; decision and note": step(Judged(wrong)),
        "a document of two states is read": lambda: load_document(MACHINE),
        "and compiled": lambda: compile_workflow(read.document, KIT),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="What a verdict costs, in CPU time of one core.")
    parser.add_argument("--rounds", type=int, default=41, help="batches of each call, of which the median counts (41)")
    rounds = parser.parse_args(arguments).rounds
    case = bench()
    if different := differences(case):
        print("error: the two ladders give different verdicts on", *different, sep="\n       ", file=sys.stderr)
        return 1
    events = case.events.body.count(b"\n\n")
    print(
        f"An answer of {len(case.content)} bytes with {RECORDS} records, in a body of {len(case.body.body)} bytes, "
        f"or in {events} events of {len(case.events.body)} bytes.\n"
        f"Microseconds of CPU, the median of {rounds} rounds in which all calls take turns; ratios are medians of "
        "each round's.\n"
    )
    ratio = _ladders(case, rounds)
    _rungs(case, rounds)
    print("beside the ladder")
    for name, times in measured(beside(), rounds).items():
        print(f"  {name:<44}{times.median:>9.1f}")
    if ratio < LEAST_RATIO:
        print(f"error: {ratio:.1f} times as fast without rules, and not {LEAST_RATIO}", file=sys.stderr)
        return 1
    return 0


def _ladders(case: Bench, rounds: int) -> float:
    rows: dict[str, tuple[Received, Criteria, Criteria]] = {
        "four rungs, no rule": (case.body, case.plain, case.reference),
        "four rungs, one CEL rule": (case.body, case.ruled, case.ruled_reference),
        "the same, streamed": (case.events, case.ruled, case.ruled_reference),
    }
    calls: dict[str, Callable[[], object]] = {}
    for name, (arrival, ours, theirs) in rows.items():
        calls[name] = case.judged(arrival, ours)
        calls[f"{name} (jsonschema)"] = case.judged(arrival, theirs)
    found = measured(calls, rounds)
    print(f"{'':<46}{'Stepladder':>10}  {'on jsonschema':>13}  {'ratio':>6}")
    ratios = []
    for name in rows:
        fast, slow = found[name], found[f"{name} (jsonschema)"]
        ratios.append(slow.over(fast))
        print(f"  {name:<44}{fast.median:>10.1f}  {slow.median:>13.1f}  {ratios[-1]:>6.1f}")
    print()
    return ratios[0]


def _rungs(case: Bench, rounds: int) -> None:
    judged = "all of it, in one verdict"
    found = measured({**case.pieces(), judged: case.judged(case.body, case.ruled)}, rounds)
    total = found[judged].median
    print("where the time goes, with one CEL rule")
    for name, times in found.items():
        if name != judged:
            print(f"  {name:<44}{times.median:>10.1f}  {times.median / total:>13.0%}")
    rest = total - sum(times.median for name, times in found.items() if name != judged)
    print(f"  {'the order of steps, the verdict, colder caches':<44}{rest:>8.1f}  {rest / total:>13.0%}")
    print(f"  {judged:<44}{total:>10.1f}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
