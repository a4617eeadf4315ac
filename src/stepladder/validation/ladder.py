"""The ladder: four rungs in order, one verdict for every arrival."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepladder.schemas.answer import Received, Verdict, Violation
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.validation import termination
from stepladder.validation.parse import NotJson, Parsed, parse
from stepladder.validation.schema import BadSchema
from stepladder.validation.semantic import Rule, broken

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival, Completion
    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.bodies import Reading
    from stepladder.validation.failing import Failing
    from stepladder.validation.schema import Schema

_ALL_PASSED = Rungs.climbed(4)
_BRACE = re.compile(r"\{")
_DECODER = json.JSONDecoder()
_TRIES = 16


@dataclass(frozen=True, slots=True)
class Rubric:
    """What one answer is judged by.

    A ``BadSchema`` is allowed for, since answers are also judged offline against schemas that no workflow could use:
    what reaches the schema rung then fails there. ``schema_known_bad`` says that the engine refused this schema while
    it answered a known-good one.
    """

    schema: Schema | BadSchema
    rules: tuple[Rule, ...] = ()
    max_completion_tokens: int = 512
    schema_known_bad: bool = False


@dataclass(frozen=True, slots=True)
class Fall:
    """Why an answer stopped at a step. ``cause`` is a word of ``Cause``, a keyword or a rule's id, by outcome."""

    cause: str | None
    errors: tuple[Violation, ...]


@dataclass(slots=True)
class Climb:
    """One answer on its way up."""

    reading: Reading
    rubric: Rubric
    names: Mapping[str, Json]
    output: Json = None
    observed: tuple[Violation, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the precedence. ``passed`` rungs lie below it; None means that no rung is reached at all."""

    outcome: Outcome
    passed: int | None
    look: Callable[[Climb], Fall | None]

    @property
    def rungs(self) -> Rungs:
        """How the rungs stand when an answer falls here."""
        return Rungs.climbed(0, fell=False) if self.passed is None else Rungs.climbed(self.passed)


def judge(arrival: Arrival, rubric: Rubric, names: Mapping[str, Json]) -> Verdict:
    """The one verdict on what arrived: the first step of ``PRECEDENCE`` at which it falls, or ``valid``.

    ``names`` are the root names that rules read (``input``, ``turns``, ``tools``, ...); ``output`` is added to them.
    Pure, and never raises, whatever the bytes.
    """
    climb = Climb(termination.receive(arrival, schema_known_bad=rubric.schema_known_bad), rubric, names)
    retry_after_s = arrival.retry_after_s if isinstance(arrival, Received) else None
    for step in PRECEDENCE:
        if (fall := step.look(climb)) is not None:
            return Verdict(
                outcome=step.outcome,
                cause=fall.cause,
                rungs=step.rungs,
                errors=fall.errors,
                observed=climb.observed,
                completion=climb.reading.completion,
                retry_after_s=retry_after_s,
                schema_known_bad=rubric.schema_known_bad,
            )
    return Verdict(
        outcome=Outcome.VALID,
        rungs=_ALL_PASSED,
        observed=climb.observed,
        output=climb.output,
        completion=climb.reading.completion,
        retry_after_s=retry_after_s,
        schema_known_bad=rubric.schema_known_bad,
    )


def _fall(failing: Failing | None) -> Fall | None:
    return None if failing is None else Fall(failing.cause, (Violation("", failing.reason),))


def _transport(climb: Climb) -> Fall | None:
    return _fall(termination.transport(climb.reading))


def _truncation(climb: Climb) -> Fall | None:
    return _fall(termination.truncation(climb.reading, climb.rubric.max_completion_tokens))


def _schema_rejected(climb: Climb) -> Fall | None:
    return _fall(termination.rejected(climb.reading, Outcome.SCHEMA_REJECTED))


def _request_rejected(climb: Climb) -> Fall | None:
    return _fall(termination.rejected(climb.reading, Outcome.REQUEST_REJECTED))


def _refused(climb: Climb) -> Fall | None:
    return _fall(termination.refused(climb.reading))


def _empty(climb: Climb) -> Fall | None:
    completion = climb.reading.completion
    if completion.content is not None and completion.content.strip():
        return None
    cause, reason = _why_empty(completion)
    return Fall(cause, (Violation("", reason),))


def _why_empty(completion: Completion) -> tuple[Cause, str]:
    if completion.tool_calls:
        return Cause.UNEXPECTED_TOOL_CALLS, "the answer must be one JSON document; it called a tool and says nothing"
    if completion.reasoning is not None and holds_document(completion.reasoning):
        reason = "the answer must be one JSON document; it is empty, and a document stands in the reasoning"
        return Cause.CONTENT_IN_REASONING, reason
    return Cause.NO_CONTENT, "the answer must be one JSON document; it is empty"


def holds_document(text: str) -> bool:
    """Whether a JSON document stands in a text: the whole of it, or an object with fields somewhere in it.

    Of many braces the first and the last few are tried, so that the time stays linear.
    """
    match parse(text.encode("utf-8", "surrogatepass")):
        case Parsed(Mapping() | list()):
            return True
    starts = [match.start() for match in _BRACE.finditer(text)]
    return any(_object_at(text, start) for start in {*starts[:_TRIES], *starts[-_TRIES:]})


def _object_at(text: str, start: int) -> bool:
    try:
        found, _ = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return bool(found)


def _parse(climb: Climb) -> Fall | None:
    match parse(climb.reading.completion.content or b""):
        case Parsed(value):
            climb.output = value
            return None
        case NotJson(cause, reason):
            return Fall(cause, (Violation("", reason),))


def _schema(climb: Climb) -> Fall | None:
    match climb.rubric.schema:
        case BadSchema(faults):
            errors = tuple(
                Violation(
                    "",
                    f"could not be checked: the schema is wrong at {fault.pointer or 'its root'}, which {fault.reason}",
                    fault.source,
                )
                for fault in faults
            )
        case schema:
            errors = schema.violations(climb.output)
    return Fall(errors[0].source, errors) if errors else None


def _semantic(climb: Climb) -> Fall | None:
    rules = climb.rubric.rules
    if not rules:
        return None
    observing = tuple(rule for rule in rules if rule.severity == "observe")
    rejecting = tuple(rule for rule in rules if rule.severity == "reject")
    climb.observed = broken(observing, climb.output, climb.names)
    errors = broken(rejecting, climb.output, climb.names)
    return Fall(errors[0].source, errors) if errors else None


PRECEDENCE: tuple[Step, ...] = (
    Step(Outcome.TRANSPORT, None, _transport),
    Step(Outcome.TRUNCATION, 0, _truncation),
    Step(Outcome.SCHEMA_REJECTED, None, _schema_rejected),
    Step(Outcome.REQUEST_REJECTED, None, _request_rejected),
    Step(Outcome.REFUSED, 0, _refused),
    Step(Outcome.EMPTY, 1, _empty),
    Step(Outcome.PARSE_FAILURE, 1, _parse),
    Step(Outcome.SCHEMA_VIOLATION, 2, _schema),
    Step(Outcome.SEMANTIC, 3, _semantic),
)
"""The precedence of outcomes, written once: an answer has the outcome of the first step at which it falls."""
