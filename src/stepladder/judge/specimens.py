"""Lines of a file for ``stepladder judge``, read into what the ladder judges. Pure but for what it has compiled."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.finding import Finding
from stepladder.schemas.outcomes import Cause
from stepladder.schemas.specimen import Specimen
from stepladder.validation.ladder import Criteria, judge
from stepladder.validation.schema import compile_schema
from stepladder.validation.semantic import Rule
from stepladder.workflows.load import mistakes
from stepladder.workflows.names import EACH, ROOTS
from stepladder.workflows.rules import BadRule, compile_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.answer import Arrival, Verdict
    from stepladder.schemas.document import RuleSpec
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.specimen import Response
    from stepladder.schemas.tool import Kit
    from stepladder.validation.schema import BadSchema, Schema

KEPT = 64
"""Compiled schemas, and as many lists of rules, that a reader keeps for the next lines."""
LARGEST_KEPT = 256 * 1024
"""Characters of a schema or a list of rules that is worth keeping: so memory has a bound, whatever the lines hold."""

EXAMPLE = '{"id": "one", "schema": {"type": "object"}, "response": {"status": 200, "body": "..."}}'
AS_TEXT = "give the body as a string of its exact bytes"


@dataclass(frozen=True, slots=True)
class Case:
    """One answer and what it is judged by. ``names`` are what rules read, as of a job."""

    id: str | int
    arrival: Arrival
    criteria: Criteria
    names: Mapping[str, Json]
    expect: Json

    def judge(self) -> Verdict:
        return judge(self.arrival, self.criteria, self.names)


class Specimens:
    """Reads lines. Schemas and rules that stand on many lines are compiled once.

    What cannot be used comes back as findings, each with a pointer into the line. A schema that is none, and an
    expression that cannot be used, are no fault of the line: the answer that reaches them falls there, closed.
    """

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._schema = lru_cache(KEPT)(_schema_of)
        self._rules = lru_cache(KEPT)(self._compiled)

    def read(self, line: bytes) -> Case | tuple[Finding, ...]:
        """One line, in UTF-8. Raises nothing."""
        value: Any = None
        try:
            value = _DECODER.decode(line.decode("utf-8"))
            specimen = Specimen.model_validate(value)
            rules = self._rules_of(specimen.rules)
            if isinstance(rules, Finding):
                return (rules,)
            return Case(
                id=specimen.id,
                arrival=_arrival(specimen.response),
                criteria=Criteria(
                    schema=self._schema_of(specimen.schema_),
                    rules=rules,
                    max_completion_tokens=specimen.max_completion_tokens,
                    schema_known_bad=specimen.schema_known_bad,
                ),
                names=_names(specimen),
                expect=specimen.expect,
            )
        except ValidationError as error:
            return tuple(mistakes(error, value)) if isinstance(value, dict) else (_not_a_map(value),)
        except (ValueError, RecursionError) as error:
            return (_unreadable(error),)

    def _schema_of(self, schema: Json) -> Schema | BadSchema:
        text = json.dumps(schema)
        return compile_schema(schema) if len(text) > LARGEST_KEPT else self._schema(text)

    def _rules_of(self, specs: Sequence[RuleSpec]) -> tuple[Rule, ...] | Finding:
        size = sum(len(spec.check or "") + len(spec.reason) for spec in specs)
        return self._compiled(tuple(specs)) if size > LARGEST_KEPT else self._rules(tuple(specs))

    def _compiled(self, specs: tuple[RuleSpec, ...]) -> tuple[Rule, ...] | Finding:
        rules: list[Rule] = []
        for index, spec in enumerate(specs):
            if any(spec.id == rule.id for rule in rules):
                return Finding(
                    "rule_twice", f"/rules/{index}/id", f"the rule id `{spec.id}` stands twice", "give each its own"
                )
            match compile_rule(spec, self._kit):
                case BadRule("call", code, message, remedy):
                    return Finding(code, f"/rules/{index}/call", message, remedy)
                case BadRule(message=message):
                    rules.append(Rule(spec.id, call=_Unusable(message), pointer=spec.pointer, severity=spec.severity))
                case rule:
                    rules.append(rule)
        return tuple(rules)


@dataclass(frozen=True, slots=True)
class _Unusable:
    """In place of an expression that cannot be used: no answer passes it."""

    why: str

    def __call__(self, output: Any, *, input: Any, turns: Any, tools: Any) -> str:  # noqa: A002, ARG002 -- a rule's form
        return f"could not be checked: {self.why}"


def _schema_of(text: str) -> Schema | BadSchema:
    return compile_schema(json.loads(text))


def _arrival(response: Response) -> Arrival:
    body = response.body
    if isinstance(body, str):
        content = _bytes(body)
    else:
        content = b"" if "body" not in response.model_fields_set else json.dumps(body).encode()
    if response.transport is not None:
        return Lost(Cause(response.transport), "", content, response.status, response.streamed)
    assert response.status is not None  # noqa: S101 -- the shape says so
    return Received(response.status, content, response.streamed)


def _bytes(text: str) -> bytes:
    """The bytes that a text stands for. One that is no UTF-8 stands as U+DC80 to U+DCFF, as Python spells it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _names(specimen: Specimen) -> dict[str, Json]:
    """As ``names_of`` gives them for a job: what has not happened is not there."""
    names: dict[str, Json] = {name: getattr(specimen, name) for name in ROOTS}
    if specimen.last_tool is None:
        del names["last_tool"]
    if specimen.each is not None:
        names[EACH] = specimen.each
    return names


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        twice = next(name for name, times in Counter(name for name, _ in items).items() if times > 1)
        raise _UnusableLineError(f"an object holds the name {json.dumps(twice)} twice")
    return found


def _constant(word: str) -> Any:
    raise _UnusableLineError(f"{word} is no number in JSON")


def _fraction(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _UnusableLineError(f"the number {digits[:40]} is too large to be kept")
    return number


class _UnusableLineError(ValueError):
    """JSON that cannot be kept as it stands."""


# A line is the author's file, not the model's answer: half a character may well be what it is about.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_fraction)


def _unreadable(error: ValueError | RecursionError) -> Finding:
    match error:
        case UnicodeDecodeError(start=start):
            return Finding("not_text", "", f"this is no UTF-8 text: byte {start + 1}", "save the file as UTF-8")
        case json.JSONDecodeError(msg=msg, pos=pos):
            return Finding("not_json", "", f"this is no JSON: {msg} (character {pos + 1})", f"write {EXAMPLE}")
        case _UnusableLineError():
            return Finding("not_json", "", str(error), f"write each name once and plain numbers, or {AS_TEXT}")
        case RecursionError():
            return Finding("too_deep", "", "this nests too deep", AS_TEXT)
        case _:
            return Finding("not_json", "", "a number has too many digits to be kept", AS_TEXT)


def _not_a_map(value: Json) -> Finding:
    kind = "a list" if isinstance(value, list) else "no object"
    return Finding("not_a_map", "", f"this is JSON, and {kind}", f"write one object a line: {EXAMPLE}")
