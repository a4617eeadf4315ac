"""The request as it was sent: built again from the rows, it is what the engine received, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.engine.wire import encode
from stepladder.models.ids import uuid7
from stepladder.runner.machines import Machines
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.replay import Mode
from stepladder.sdk import kit
from stepladder.services.replays import Prepared, Replays, Wanted
from stepladder.testing import Answer, Fault

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.testing import RecordedRequest

    from .conftest import Open, Works

ODD = 'Number? \\ " \u2028 ü \0 😀'


async def rebuilt(w: Works, job: UUID) -> list[tuple[str, bytes]]:
    """Of each attempt the id under which it was sent, and its bytes."""
    found = []
    for attempt in await w.attempts(job):
        sent = await w.reads.request(attempt.id)
        assert sent is not None
        found.append((sent.request_id, encode(sent.body)))
    return found


def received(requests: list[RecordedRequest]) -> list[tuple[str, bytes]]:
    return [(request.headers["x-request-id"], request.raw) for request in requests]


@pytest.mark.parametrize(
    "fields", [{"system": f"Be brief. {ODD}", "stream": False}, {"decoding": "prompt", "sampling": {"top_p": 0.5}}]
)
async def test_turns_with_history_and_notes_are_built_again_to_the_byte(works: Open, fields: dict[str, Any]) -> None:
    w = await works({"n": 1}, {"n": -5}, "no JSON: \0 \x85", {"n": 2}, {"n": 3}, {"n": 4})
    states = {
        "one": asking(ask="{{ input.odd }}", sampling={"temperature": 0.0, "seed": 7}, next="two"),
        "two": asking(ask="And then?", stream=True, retry={"attempts": 3}, max_completion_tokens=77, next="three"),
        "three": asking(ask="Only one before.", history=1, stream=False, decoding="prompt", next="four"),
        "four": asking(history="none", model="large", decoding="strict"),
    }
    done = await w.run(states, {"odd": ODD}, **fields)
    assert (done.status, done.attempts) == ("succeeded", 6)
    assert await rebuilt(w, done.id) == received(w.engine.requests)


async def test_a_turn_that_chooses_a_tool_needs_no_tool_to_be_built_again(
    works: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    @stepladder.tool("look", effect="read")
    def look(word: str) -> dict[str, Any]:
        return {"found": word, "ratio": 1.5, "deep": [{"a": None}]}

    w = await works({"action": "look", "arguments": {"word": "ü"}}, {"n": 2})
    states = {
        "act": {"ask": "Which tool?", "tools": ["look"], "next": {"look": "run"}},
        "run": {"tool": {"from": "act"}, "next": {"ok": "report", "error": "broken"}},
        "report": asking(ask="It found {{ tools.run }}. Which number?"),
    }
    done = await w.run(states)
    assert done.status == "succeeded"
    monkeypatch.setattr(kit, "_tools", {})  # as in a process that only looks
    assert await rebuilt(w, done.id) == received(w.engine.requests)


async def test_attempts_that_were_lost_and_cut_off_were_sent_as_they_say(works: Open) -> None:
    w = await works(Fault("reset_before"), Answer('{"n": 1', finish_reason="length"), {"n": 1})
    done = await w.run({"one": asking(retry={"attempts": 2})})
    assert (done.status, done.attempts) == ("succeeded", 3)
    built = await rebuilt(w, done.id)
    assert built == received(w.engine.requests)
    assert len({body for _, body in built}) == 2  # the same again, and then with a larger budget


async def test_a_fork_by_a_changed_document_is_built_by_that_document(works: Open) -> None:
    w = await works({"n": 1}, {"n": 2}, {"n": 3})
    job = (await w.run({"one": asking(next="two"), "two": asking(ask="And then?")})).id
    replays = Replays(w.store.database, w.store, Machines(w.store, kit.registered()))
    changes: dict[str, Any] = {
        "states.two.stream": False,
        "states.two.ask": "And now?",
        "states.two.decoding": "prompt",
    }
    prepared = await replays.prepared(job, Wanted(Mode.FORK, 2, changes), LOCAL, datetime.now(UTC))
    assert isinstance(prepared, Prepared)
    await replays.keep(prepared.definition, changes)
    await w.store.submit_many([prepared.new])
    before = await rebuilt(w, job)
    assert (await w.drive(prepared.new.job.id)).status == "succeeded"
    assert [*before, *await rebuilt(w, prepared.new.job.id)] == received(w.engine.requests)
    assert b"And now?" in w.engine.requests[-1].raw


async def test_an_attempt_that_does_not_exist_has_no_request(works: Open) -> None:
    w = await works()
    assert await w.reads.request(uuid7()) is None
