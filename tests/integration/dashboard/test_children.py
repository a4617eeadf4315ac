"""A job that called others, and one that was called, each with a way to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Visitor

CHILD = """
name: one-word
version: 1
input: {type: object, properties: {n: {type: integer, maximum: 1}}, required: [n]}
start: ask
states:
  ask: {wait: {signal: word}, next: {go: done}}
  done: {end: succeeded, result: signals.ask}
"""
PARENT = """
name: two-words
version: 1
start: ask
states:
  ask:
    call: one-word
    input: {n: each.item}
    each: {over: "[1, 1, 2]", at_most: 3, failures: collect}
    next: {ok: done, error: broken}
  done: {end: succeeded, result: calls.ask}
  broken: {end: failed}
"""


async def test_a_family_is_shown_from_both_sides_while_it_waits_and_at_its_end(visitor: Visitor) -> None:
    await visitor.site.submit(CHILD, {"n": 1})  # which publishes it
    parent = await visitor.site.run(document=PARENT)
    page = await visitor.page(f"/jobs/{parent}")
    assert "Waiting for the jobs that it called" in page
    assert "0 of 3 ended" in page
    children = await visitor.site.reads.children(parent)
    assert [child.index for child in children] == [1, 2], "the third input does not fit"
    for child in children:
        assert f'href="/jobs/{child.id}"' in page
        assert f'href="/jobs/{parent}"' in await visitor.page(f"/jobs/{child.id}")
    async with visitor.site.worker(signals={"word": [{"action": "go"}] * 2}) as worker:
        await worker.drive(parent)
    page = await visitor.page(f"/jobs/{parent}")
    assert "1 of 3 gave no result" in page
    assert "workflow one-word called, children: 3" in page
