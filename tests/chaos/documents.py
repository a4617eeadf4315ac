"""The workflows of the chaos test, and the share of each.

Every question names its job and step, which alone determine the engine's answer; every answer repeats them, so that
no answer can pass for another.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.seeded import seeded_random

ANSWER = """
    output: &answer
      type: object
      properties: {n: {type: integer, minimum: 0, maximum: 100000000}, step: {type: string, maxLength: 20}}
      required: [n, step]
      additionalProperties: false
    rules: &rules
      - {id: this-job, check: "output.n == input.n", pointer: /n, reason: "must be the job that was asked about"}
"""
AGAIN = "    output: *answer\n    rules: *rules\n"
HEAD = """version: 1
input: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
"""

CHAIN = f"""
name: chaos-chain
{HEAD}
start: one
states:
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: list
  list:
    ask: "Chaos job {{{{ input.n }}}} step list{{{{ each.index }}}}"
{AGAIN}
    each: {{count: "3", at_most: 3, unique: [/step]}}
    next: two
  two:
    ask: "Chaos job {{{{ input.n }}}} step two"
{AGAIN}
    next: done
  done: {{end: succeeded, result: {{n: "turns.two.n", steps: "size(lists.list)"}}}}
"""

TOOLS = f"""
name: chaos-tools
{HEAD}
start: one
states:
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: look
  look: {{tool: look, arguments: {{n: input.n, step: "'look'"}}, next: {{ok: credit}}}}
  credit: {{tool: credit, arguments: {{n: input.n, step: "'credit'"}}, next: {{ok: two, error: told}}}}
  two:
    ask: "Chaos job {{{{ input.n }}}} step two"
{AGAIN}
    next: again
  again: {{tool: credit, arguments: {{n: input.n, step: "'again'"}}, next: {{ok: done, error: told}}}}
  done: {{end: succeeded, result: {{n: "turns.two.n"}}}}
  told: {{end: succeeded, result: {{n: "input.n"}}}}
"""

PAYMENT = f"""
name: chaos-payment
{HEAD}
start: one
states:
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: confirm
  confirm:
    wait:
      signal: confirm
      schema: {{type: object, properties: {{action: {{enum: [go]}}}}, required: [action]}}
    next: {{go: pay}}
  pay: {{tool: pay, arguments: {{n: input.n, step: "'pay'"}}, next: {{ok: two, error: two}}}}
  two:
    ask: "Chaos job {{{{ input.n }}}} step two"
{AGAIN}
    next: done
  done: {{end: succeeded, result: {{n: "turns.two.n"}}}}
"""

WAITS = f"""
name: chaos-waits
{HEAD}
start: one
states:
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: news
  news:
    wait: {{signal: news, schema: {{type: object, properties: {{action: {{enum: [told]}}}}, required: [action]}}}}
    next: {{told: two}}
  two:
    ask: "Chaos job {{{{ input.n }}}} step two"
{AGAIN}
    next: timer
  timer:
    wait:
      signal: nobody
      schema: {{type: object, properties: {{action: {{enum: [never]}}}}, required: [action]}}
      timeout_s: 1.5
    next: {{timeout: three, never: three}}
  three:
    ask: "Chaos job {{{{ input.n }}}} step three"
{AGAIN}
    next: done
  done: {{end: succeeded, result: {{n: "turns.three.n"}}}}
"""

CHILD = f"""
name: chaos-child
{HEAD}
start: one
states:
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: credit
  credit: {{tool: credit, arguments: {{n: input.n, step: "'credit'"}}, next: {{ok: done}}}}
  done: {{end: succeeded, result: {{n: "input.n"}}}}
"""

FAMILY = f"""
name: chaos-family
{HEAD}
start: children
states:
  children:
    call: chaos-child
    input: {{n: each.item}}
    each: {{over: "[10000000 + input.n * 10, 10000001 + input.n * 10]", at_most: 2}}
    next: {{ok: one, error: broken}}
  one:
    ask: "Chaos job {{{{ input.n }}}} step one"
{ANSWER}
    next: done
  done: {{end: succeeded, result: {{n: "turns.one.n", children: "size(calls.children)"}}}}
  broken: {{end: failed}}
"""

SLOW = f"""
name: chaos-slow
{HEAD}
start: slow1
states:
  slow1:
    ask: "Chaos job {{{{ input.n }}}} step slow1"
{ANSWER}
    next: slow2
"""
for _n in range(2, 6):
    SLOW += f"""
  slow{_n}:
    ask: "Chaos job {{{{ input.n }}}} step slow{_n}"
{AGAIN}
    next: {f"slow{_n + 1}" if _n < 5 else "done"}
"""
SLOW += "  done: {end: succeeded, result: {n: turns.slow5.n}}\n"

DOCUMENTS = (CHAIN, TOOLS, PAYMENT, WAITS, CHILD, FAMILY, SLOW)
SHARES = {"chaos-chain": 3, "chaos-tools": 3, "chaos-payment": 3, "chaos-waits": 2, "chaos-family": 1}


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job to submit, and what clients do to it; determined by the seed."""

    n: int
    workflow: str
    after_s: float
    """Seconds from the start to its submission."""
    twice: bool
    early: bool
    """Its signal is sent before the job waits for it."""
    fate: str
    """What a client does to it a moment later: nothing, ``cancel`` or ``pause``."""


def planned_jobs(jobs: int, seed: int, within_s: float, at_once: int = 0) -> list[PlannedJob]:
    """``jobs`` jobs: the first ``at_once`` at the start, the others spread over ``within_s`` seconds."""
    rng = seeded_random("planned jobs", seed)
    names, weights = list(SHARES), list(SHARES.values())
    return [
        PlannedJob(
            n,
            rng.choices(names, weights)[0],
            rng.uniform(0, within_s) * (n > at_once),
            twice=rng.random() < 0.2,
            early=rng.random() < 0.5,
            fate=rng.choices(["", "cancel", "pause"], [14, 1, 1])[0],
        )
        for n in range(1, jobs + 1)
    ]
