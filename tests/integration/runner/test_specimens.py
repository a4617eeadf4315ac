"""The specimens as live jobs: what a scripted engine really sends gets the verdict that ``stepladder judge`` gives.

Every specimen is asked for twice, by a request that wants a stream and by one that does not. The body of its line is
what comes back, to the byte, whichever API's shape it has; a whole chat completion is streamed to the request that
wants a stream. What is lost on the way is lost here too: a port that is closed, an engine that says nothing, a
connection that is reset, a worker that is gone. Where a worker asks the engine with a schema that is known to be good,
whether the specimen's is bad, it is answered as the specimen has it.

Not asked for are those in ``NOT_LIVE``, and why.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.engine.pool import Settings
from stepladder.judge.expectations import told
from stepladder.judge.specimens import Case, Specimens
from stepladder.schemas.answer import Verdict
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.tool import Kit
from stepladder.testing import Fault, Raw, eventually
from stepladder.validation.sse import looks_like_events
from support.specimens import LINES, SPECIMENS, streamed

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.testing import Line, RecordedRequest

    from .conftest import Open, Works

NOT_LIVE = {
    "schema-that-does-not-compile": "no document may have such a schema",
    "schema-known-bad-strange-words": "of a refusal with words no worker asks whether the schema is to blame",
}
BY_ID = {specimen["id"]: specimen for specimen in SPECIMENS}
LOST = {name: specimen for name, specimen in BY_ID.items() if "transport" in specimen["response"]}
ANSWERED = {name: specimen for name, specimen in BY_ID.items() if name not in NOT_LIVE and name not in LOST}
HASTY = Settings(first_byte_timeout_s=0.3, stall_timeout_s=0.3)
BROKEN = Raw(b"", 500)
MARK = re.compile(r"specimen (\S+)")


def states(specimen: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """A workflow that asks for the specimen, once, and has every state that its rules speak of."""
    rules = specimen.get("rules", [])
    ask = {
        "ask": f"specimen {specimen['id']}",
        "output": specimen["schema"],
        "rules": rules,
        "max_completion_tokens": specimen["max_completion_tokens"],
        "retry": {"attempts": 1, "transport": 0},
        "stream": stream,
        # No decoder enforces it, and so a document may ask for it in words alone.
        "decoding": "prompt" if "uniqueItems" in specimen["schema"] else "strict",
    }
    actions = set(re.findall(r'"action": \{"const": "(\w+)"\}', json.dumps(specimen["schema"])))
    others = set(re.findall(r"turns\.(\w+)", json.dumps(rules)))
    other = {"ask": "never asked", "output": {"type": "object"}, "next": "done"}
    never = {"on_failure": {"request_rejected": min(others)}} if others else {}
    found: dict[str, Any] = {"only": ask | {"next": dict.fromkeys(actions, "done") if actions else "done"} | never}
    return found | dict.fromkeys(sorted(others), other)


def reply(request: RecordedRequest) -> Line | None:
    """The specimen that the question names; None for a question about the engine itself."""
    named = MARK.search(request.text)
    if named is None:
        return None
    response = BY_ID[named[1]]["response"]
    if request.streamed and (stream := streamed(response)) is not None:
        return Raw(stream, response["status"], "text/event-stream; charset=utf-8")
    body = response["body"]
    sent = (body if isinstance(body, str) else json.dumps(body)).encode()
    # A proxy may lose the type of a stream on the way, and so the request that asked for none gets one without it.
    as_events = request.streamed and isinstance(body, str) and looks_like_events(sent)
    return Raw(sent, response["status"], "text/event-stream" if as_events else "application/json")


def judged_offline() -> dict[str, dict[str, Any]]:
    reader = Specimens(Kit())
    cases = [reader.read(line) for line in LINES]
    return {str(case.id): told(case.id, case.judge()) for case in cases if isinstance(case, Case)}


OFFLINE = judged_offline()


async def judged_live(works: Works, job: UUID, name: str) -> dict[str, Any]:
    """The first attempt as it is stored, in the form in which ``judge`` tells a verdict."""
    [turn] = await works.reads.turns(job)
    first = turn.attempts[0]
    assert first.outcome is not None
    assert first.rungs is not None
    output = turn.output if first.outcome is Outcome.VALID else None
    return told(name, Verdict(first.outcome, first.cause, first.rungs, first.errors, first.observed, output))


@pytest.mark.parametrize("stream", [True, False])
async def test_what_an_engine_sends_gets_the_verdict_that_judge_gives(works: Open, stream: bool) -> None:
    w = await works(respond=lambda request: reply(request) or BROKEN)
    runner = w.runner(lease_s=60)  # they all start at once
    sent = {name: one for name, one in ANSWERED.items() if "schema_known_bad" not in one}
    jobs = {name: await w.submit(states(one, stream=stream)) for name, one in sent.items()}
    await asyncio.gather(*(runner.run_slice(job) for job in jobs.values()))
    assert len([request for request in w.engine.requests if MARK.search(request.text)]) == len(sent)
    live = {name: await judged_live(w, job, name) for name, job in jobs.items()}
    different = {name: (verdict, OFFLINE[name]) for name, verdict in live.items() if verdict != OFFLINE[name]}
    assert different == {}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", [name for name, one in ANSWERED.items() if "schema_known_bad" in one])
async def test_a_schema_is_known_to_be_bad_where_a_good_one_is_answered(works: Open, name: str, stream: bool) -> None:
    w = await works(respond=lambda request: reply(request) or {"ok": True})
    job = await w.submit(states(ANSWERED[name], stream=stream))
    await w.runner().run_slice(job)
    assert await judged_live(w, job, name) == OFFLINE[name]


def but_for_the_words(verdict: dict[str, Any]) -> dict[str, Any]:
    """The words for a lost connection are the client's, so no line of a file has them."""
    return verdict | {"errors": None}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", LOST)
async def test_what_is_lost_on_the_way_gets_the_verdict_that_judge_gives(works: Open, name: str, stream: bool) -> None:
    cause = LOST[name]["response"]["transport"]
    fault = Fault("reset_mid" if cause == "disconnected" else "hang")
    w = await works(fault, {"mended": True}, settings=HASTY if cause == "timeout" else None)
    job = await w.submit(states(LOST[name], stream=stream))
    if cause == "connect":
        await asyncio.to_thread(w.engine.down)
    if cause == "abandoned":
        worker = asyncio.create_task(w.runner().run_slice(job))
        await eventually(lambda: w.engine.in_flight > 0)
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker
    await w.runner().run_slice(job)
    assert but_for_the_words(await judged_live(w, job, name)) == but_for_the_words(OFFLINE[name])


def test_every_specimen_is_asked_for_live_or_named_with_a_reason() -> None:
    assert ANSWERED.keys() | LOST.keys() | NOT_LIVE.keys() == BY_ID.keys()
    assert not NOT_LIVE.keys() & (ANSWERED.keys() | LOST.keys())
