"""Lines of a file for ``stepladder judge``, read into what the ladder judges. Pure, but for a cache of compilations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.finding import Finding
from stepladder.schemas.outcomes import Cause, Rungs
from stepladder.schemas.specimen import Specimen
from stepladder.validation.ladder import Criteria, judge
from stepladder.validation.parse import Refused, strict_decoder
from stepladder.validation.schema import BadSchema, compile_schema
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
    from stepladder.validation.schema import Schema

KEPT = 64
"""Compiled schemas, and as many compiled lists of rules, that a reader caches."""
MAX_DIGITS = 4300
"""Of an integer in a line."""
LARGEST_KEPT = 256 * 1024
"""Characters of the largest schema or list of rules that is cached, so that memory is bounded."""

ANY = cast("Schema", compile_schema(True))
"""Takes the place of a schema that cannot be used, where an engine's refusal never reaches it."""
EXAMPLE = '{"id": "one", "schema": {"type": "object"}, "response": {"status": 200, "body": "..."}}'
AS_TEXT = "give the body as a string of its exact bytes"


@dataclass(frozen=True, slots=True)
class Case:
    """One answer and what it is judged by. ``names`` are what rules read, as in a job."""

    id: str | int
    arrival: Arrival
    criteria: Criteria
    names: Mapping[str, Json]
    expect: Json

    def judge(self) -> Verdict:
        return judge(self.arrival, self.criteria, self.names)


class Specimens:
    """Reads lines. Schemas and rules that are on many lines are compiled once.

    A line that cannot be used comes back as findings, each with a pointer into the line: so does one with a bad schema,
    unless its engine gave no answer to judge. With a bad expression an answer that reaches it fails there.
    """

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._schema = lru_cache(KEPT)(_schema_of)
        self._rules = lru_cache(KEPT)(self._compiled)

    def read(self, line: bytes) -> Case | tuple[Finding, ...]:
        """Reads one line, in UTF-8. Never raises."""
        value: Any = None
        try:
            value = strict_decoder(MAX_DIGITS).decode(line.decode("utf-8"))
            specimen = Specimen.model_validate(value)
            rules = self._rules_of(specimen.rules)
            if isinstance(rules, Finding):
                return (rules,)
            arrival = _arrival(specimen.response)
            schema = self._schema_of(specimen.schema_)
            if isinstance(schema, BadSchema):
                if judge(arrival, Criteria(ANY, (), specimen.max_completion_tokens), {}).rungs != Rungs():
                    return tuple(fault.finding(("schema",)) for fault in schema.violations)
                schema = ANY
            return Case(
                id=specimen.id,
                arrival=arrival,
                criteria=Criteria(
                    schema=schema,
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
                    "rule_twice",
                    f"/rules/{index}/id",
                    f"the rule id `{spec.id}` occurs twice",
                    "give each its own",
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
    """Replaces an expression that cannot be used: no answer passes it."""

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
    """The bytes of a body given as text. Bytes that are not UTF-8 are U+DC80 to U+DCFF (``surrogateescape``)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _names(specimen: Specimen) -> dict[str, Json]:
    """As ``names_of`` gives them for a job: without what has not happened."""
    names: dict[str, Json] = {name: getattr(specimen, name) for name in ROOTS}
    if specimen.last_tool is None:
        del names["last_tool"]
    if specimen.each is not None:
        names[EACH] = specimen.each
    return names


def _unreadable(error: ValueError | RecursionError) -> Finding:
    match error:
        case UnicodeDecodeError(start=start):
            return Finding("not_text", "", f"this is not UTF-8 text: byte {start + 1}", "save the file as UTF-8")
        case json.JSONDecodeError(msg=msg, pos=pos):
            return Finding("not_json", "", f"this is not JSON: {msg} (character {pos + 1})", f"write {EXAMPLE}")
        case Refused():
            return Finding("not_json", "", error.reason, f"fix it, or {AS_TEXT}")
        case RecursionError():
            return Finding("too_deep", "", "this is nested too deep", AS_TEXT)
        case _:
            return Finding("not_json", "", "a number has too many digits to be kept", AS_TEXT)


def _not_a_map(value: Json) -> Finding:
    kind = "a list" if isinstance(value, list) else "not an object"
    return Finding("not_a_map", "", f"this is JSON, and {kind}", f"write one object per line: {EXAMPLE}")
