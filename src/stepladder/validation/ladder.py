"""The ladder: four rungs in order, one verdict for every arrival."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepladder.schemas.answer import Received, Verdict, Violation
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.validation import termination
from stepladder.validation.parse import NotJson, Parsed, parse
from stepladder.validation.rejection import Rejection
from stepladder.validation.semantic import Rule, broken

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival, Completion
    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.schema import Schema

RUNGS = MappingProxyType(
    {
        Outcome.VALID: Rungs.climbed(4),
        Outcome.TRANSPORT: Rungs(),
        Outcome.TRUNCATION: Rungs.climbed(0),
        Outcome.SCHEMA_REJECTED: Rungs(),
        Outcome.REQUEST_REJECTED: Rungs(),
        Outcome.REFUSED: Rungs.climbed(0),
        Outcome.EMPTY: Rungs.climbed(1),
        Outcome.PARSE_FAILURE: Rungs.climbed(1),
        Outcome.SCHEMA_VIOLATION: Rungs.climbed(2),
        Outcome.SEMANTIC: Rungs.climbed(3),
    }
)
"""The state of the four rungs for each outcome."""

_BRACE = re.compile(r"\{")
_DECODER = json.JSONDecoder()
_TRIES = 16


@dataclass(frozen=True, slots=True)
class Criteria:
    """What one answer is judged by.

    ``schema_known_bad`` says that the engine refused this schema while it answered a known-good one.
    """

    schema: Schema
    rules: tuple[Rule, ...] = ()
    max_completion_tokens: int = 512
    schema_known_bad: bool = False


def judge(arrival: Arrival, criteria: Criteria, names: Mapping[str, Json]) -> Verdict:
    """The verdict on what arrived: the first outcome, in the order of ``Outcome``, that applies; else ``valid``.

    ``names`` are the root names that rules read (``input``, ``turns``, ``tools``, ...); ``output`` is added to them.
    Pure, and never raises, for any bytes.
    """
    reading = termination.receive(arrival, schema_known_bad=criteria.schema_known_bad)
    verdict = partial(
        Verdict,
        completion=reading.completion,
        retry_after_s=arrival.retry_after_s if isinstance(arrival, Received) else None,
        schema_known_bad=criteria.schema_known_bad,
    )

    def rejected(why: Rejection, observed: tuple[Violation, ...] = ()) -> Verdict:
        return verdict(why.outcome, why.cause, RUNGS[why.outcome], why.errors, observed)

    if why := termination.check(reading, criteria.max_completion_tokens) or _check_empty(reading.completion):
        return rejected(why)
    parsed = parse(reading.completion.content or b"")
    if isinstance(parsed, NotJson):
        return rejected(Rejection.of(Outcome.PARSE_FAILURE, parsed.cause, parsed.reason))
    output = parsed.value
    if errors := criteria.schema.violations(output):
        return rejected(Rejection(Outcome.SCHEMA_VIOLATION, errors[0].source, errors))
    observed, errors = _broken_rules(criteria.rules, output, names)
    if errors:
        return rejected(Rejection(Outcome.SEMANTIC, errors[0].source, errors), observed)
    return verdict(Outcome.VALID, rungs=RUNGS[Outcome.VALID], observed=observed, output=output)


def _broken_rules(rules: tuple[Rule, ...], output: Json, names: Mapping[str, Json]) -> list[tuple[Violation, ...]]:
    """Those of severity ``observe``, then those of severity ``reject``."""
    if not rules:
        return [(), ()]
    severities = ("observe", "reject")
    return [broken([rule for rule in rules if rule.severity == severity], output, names) for severity in severities]


def _check_empty(completion: Completion) -> Rejection | None:
    if completion.content is not None and completion.content.strip():
        return None
    cause, found = Cause.NO_CONTENT, "it is empty"
    if completion.tool_calls:
        cause, found = Cause.UNEXPECTED_TOOL_CALLS, "it calls a tool and has no content"
    elif completion.reasoning is not None and holds_document(completion.reasoning):
        cause, found = Cause.CONTENT_IN_REASONING, "it is empty, and the reasoning contains a document"
    return Rejection.of(Outcome.EMPTY, cause, f"the answer must be one JSON document; {found}")


def holds_document(text: str) -> bool:
    """Whether a text contains a JSON document: as a whole, or as an object with fields somewhere in it.

    Of many braces only the first and the last few are tried, so that the time stays linear.
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
