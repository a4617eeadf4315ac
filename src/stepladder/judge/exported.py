"""Stored answers as lines for ``stepladder judge``: the bytes, what they were judged by, and the verdict to expect."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from stepladder.judge.revalidate import Unjudged
from stepladder.schemas.answer import Lost
from stepladder.schemas.document import Ask
from stepladder.workflows.job import Turn
from stepladder.workflows.lists import names_in
from stepladder.workflows.machine import AskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepladder.judge.revalidate import Answer
    from stepladder.schemas.answer import Arrival, Verdict, Violation
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine

UNIQUE = "unique"
"""Why an answer is left out: that elements of a list are unlike each other no rule on a line can say."""


def exported(machine: Machine, job: Job, answers: Iterable[Answer]) -> Iterator[dict[str, Any] | str]:
    """A line for each answer, or the reason why there is none: ``Unjudged`` or ``UNIQUE``.

    ``machine`` is the one that the job ran by.
    """
    places = {visit.ordinal: (place, visit) for place, visit in enumerate(job.visits) if isinstance(visit, Turn)}
    for answer in answers:
        place, turn = places[answer.turn]
        state, spec = machine.states.get(turn.state), machine.document.states.get(turn.state)
        if answer.arrival is None or answer.attempt.verdict is None:
            yield answer.why or Unjudged.BROKEN_OFF
        elif not isinstance(state, AskState) or not isinstance(spec, Ask):
            yield Unjudged.NO_STATE
        elif state.each is not None and state.each.unique:
            yield UNIQUE
        else:
            then = replace(job, visits=job.visits[:place])
            rules = [rule.model_dump(mode="json", by_alias=True, exclude_defaults=True) for rule in spec.rules]
            verdict = answer.attempt.verdict
            line = {
                "id": f"{job.id}/{answer.turn}/{answer.attempt.ordinal}",
                "workflow": f"{machine.name} {machine.version}",
                "state": turn.state,
                "schema": state.schema.declared,
                "rules": rules,
                "max_completion_tokens": answer.attempt.max_completion_tokens,
                "schema_known_bad": verdict.schema_known_bad,
                **names_in(then, state),
                "response": _response(answer.arrival),
                "expect": _expect(verdict),
            }
            yield {name: value for name, value in line.items() if value not in ([], {}, False) or name in KEPT}


KEPT = ("schema", "input", "response")
"""Fields that a line has even if they are empty."""


def _response(arrival: Arrival) -> dict[str, Any]:
    """The exact bytes, as a string: bytes that are not UTF-8 are encoded by ``surrogateescape``."""
    body = arrival.body.decode("utf-8", "surrogateescape")
    if isinstance(arrival, Lost):
        status = {} if arrival.status is None else {"status": arrival.status}
        return {"transport": arrival.cause.value, **status, "body": body, "streamed": arrival.streamed}
    return {"status": arrival.status, "body": body, "streamed": arrival.streamed}


def _expect(verdict: Verdict) -> dict[str, Any]:
    """Reasons are left out, so that a different wording is not a difference."""
    expect: dict[str, Any] = {
        "outcome": verdict.outcome.value,
        "cause": verdict.cause,
        "rungs": {rung: state.value for rung, state in asdict(verdict.rungs).items()},
        "errors": [_place(one) for one in verdict.errors],
        "observed": [_place(one) for one in verdict.observed],
    }
    return expect | {"output": verdict.output} if verdict.ok else expect


def _place(violation: Violation) -> dict[str, str]:
    return {"pointer": violation.pointer, "source": violation.source}
