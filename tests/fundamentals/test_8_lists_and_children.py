"""Chapter 8. A long answer is built one element at a time, and work for others is a job of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stepladder.testing import Answer, ScriptedEngine, run

if TYPE_CHECKING:
    from stepladder.testing import Line, RecordedRequest

SHOPPING = """
name: shopping
version: 1
input: {type: object, properties: {dishes: {type: array, items: {type: string, maxLength: 40}, maxItems: 9}}}
start: shop
states:
  shop:
    ask: "Dish {{ each.index }} of {{ each.count }}: {{ each.item }}. What is missing?"
    output:
      type: object
      properties: {buy: {type: string, maxLength: 20}, euros: {type: integer, minimum: 0, maximum: 99}}
      required: [buy, euros]
      additionalProperties: false
    each: {over: "input.dishes", at_most: 9, unique: [/buy]}
    rules:
      - id: within-budget
        check: "sum(each.elements.map(e, e.euros)) + output.euros <= 20"
        pointer: /euros
        reason: "must leave the whole list within 20 euros"
    next: done
  done: {end: succeeded, result: "lists.shop"}
"""


async def test_an_element_is_a_turn_and_one_that_is_wrong_is_asked_again_alone(database_url: str) -> None:
    bought = [("leeks", 5), ("leeks", 1), ("caviar", 90), ("salt", 1)]
    leeks, more_leeks, caviar, salt = (Answer({"buy": what, "euros": euros}) for what, euros in bought)
    with ScriptedEngine([leeks, more_leeks, caviar, salt]) as engine:
        ran = await run(SHOPPING, {"dishes": ["soup", "eggs"]}, engine_url=engine.url, database_url=database_url)
    assert ran.job.result == [leeks.content, salt.content]
    soup, eggs = ran.turns
    assert [attempt.outcome for attempt in soup.attempts] == ["valid"]
    assert [attempt.cause for attempt in eggs.attempts] == ["unique", "within-budget", None]


REVIEW = """
name: review
version: 1
input: {type: object, properties: {claim: {type: string, maxLength: 40}}, required: [claim]}
start: judge
states:
  judge:
    ask: "Is it true? {{ input.claim }}"
    output: {type: object, properties: {holds: {type: boolean}}, required: [holds], additionalProperties: false}
    next: done
  done: {end: succeeded, result: "turns.judge.holds"}
"""
REVIEWS = """
name: reviews
version: 1
input: {type: object, properties: {claims: {type: array, items: {type: string, maxLength: 40}, maxItems: 9}}}
start: review
states:
  review:
    call: review
    each: {over: "input.claims", at_most: 9, concurrency: 2}
    input: {claim: "each.item"}
    next: {ok: done, error: broken}
  done: {end: succeeded, result: "calls.review"}
  broken: {end: failed, result: "errors.review"}
"""
CLAIMS = ["fire is hot", "ice is hot", "water is wet", "stones can talk"]


async def test_each_claim_is_reviewed_by_a_job_of_its_own_at_most_two_at_a_time(database_url: str) -> None:
    def true(request: RecordedRequest) -> Line:
        return Answer({"holds": re.search(r"fire|water", request.text) is not None}, delay_s=0.05)

    with ScriptedEngine(respond=true) as engine:
        ran = await run(REVIEWS, {"claims": CLAIMS}, others=[REVIEW], engine_url=engine.url, database_url=database_url)
    assert ran.job.result == [True, False, True, False]
    assert ran.job.turn_count == 0
    assert engine.peak_in_flight <= 2


async def test_where_one_fails_the_others_are_stopped_and_the_parent_is_told_why(database_url: str) -> None:
    def refuse(request: RecordedRequest) -> Line:
        return Answer(None, refusal="No.") if "ice" in request.text else Answer({"holds": True})

    with ScriptedEngine(respond=refuse) as engine:
        ran = await run(REVIEWS, {"claims": CLAIMS}, others=[REVIEW], engine_url=engine.url, database_url=database_url)
    assert ran.job.status == "failed"
    why: Any = ran.job.result
    assert why["kind"] == "refused"
    assert why["message"].startswith("child 2 of 4")
