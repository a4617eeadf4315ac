"""What an audit finds in a published document: errors keep it out, warnings come with the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api

AUDITED = """
name: audited
version: 1
start: only
states:
  only:
    ask: Which words?
    output:
      type: object
      properties: {{words: {{type: array, items: {{type: string, maxLength: 9}}, {list}}}}}
      required: [words]
      additionalProperties: false
    next: done
  done: {{end: succeeded}}
"""
WHERE = "/states/only/output/properties/words"


async def test_a_keyword_that_no_engine_enforces_is_a_problem_with_its_place(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=AUDITED.format(list="maxItems: 3, uniqueItems: true"))
    [error] = problem(answer, 422)["errors"]
    assert (error["code"], error["pointer"], error["line"]) == ("not_enforced", f"{WHERE}/uniqueItems", 10)
    assert "exists_one" in error["remedy"]
    assert (await api.client.get("/v1/workflows/audited/1")).status_code == 404


async def test_a_missing_bound_is_published_and_said(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=AUDITED.format(list="minItems: 1"))
    assert answer.status_code == 201
    [warning] = answer.json()["warnings"]
    assert (warning["code"], warning["pointer"], warning["line"]) == ("no_max_items", WHERE, 10)
    assert warning["remedy"] == "add `maxItems`"
