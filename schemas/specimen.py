"""One line of a file for ``stepladder judge``: an answer, what it is judged by, and what is expected of the verdict."""

from __future__ import annotations

import difflib
from dataclasses import fields
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from stepladder.schemas.document import Part, RuleSpec
from stepladder.schemas.outcomes import CAUSES, Outcome, Rungs, RungState

LOSSES: tuple[str, ...] = CAUSES[Outcome.TRANSPORT]
ALIKE = 0.8
"""How similar, by difflib's ratio, an unknown name is to a known one to be a typo: `rule` for `rules`."""

RUNGS = tuple(field.name for field in fields(Rungs))
State = Annotated[RungState, Field(strict=False)]


class Response(BaseModel):
    """A ``status`` with a ``body``, or ``transport``, the cause why no complete answer arrived.

    ``body`` is parsed JSON, or a string of the exact bytes. ``streamed`` says that it came as ``text/event-stream``;
    a body that begins as one is read as one without it. The part of a lost answer that arrived may be given.
    Other fields, such as headers, are ignored.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    status: int | None = Field(None, ge=100, le=599)
    body: Any = None
    streamed: bool = False
    transport: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Response:
        if self.transport is None and (self.status is None or "body" not in self.model_fields_set):
            raise ValueError('a response is {"status": 200, "body": ...}, or {"transport": "timeout"}')
        if self.transport is not None and self.transport not in LOSSES:
            raise ValueError(f"`{self.transport}` is not a cause of `transport`; causes are: {', '.join(LOSSES)}")
        return self


class ExpectedError(Part):
    """One error; fields that are not given are not compared."""

    pointer: str | None = None
    reason: str | None = None
    source: str | None = None


class ExpectedRungs(Part):
    """The rungs that matter; a list of four names them all in their order."""

    termination: State | None = None
    parse: State | None = None
    schema_: State | None = Field(None, alias="schema")
    semantic: State | None = None

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return dict(zip(RUNGS, value, strict=True)) if isinstance(value, list) and len(value) == len(RUNGS) else value


class Expect(Part):
    """The expected verdict; missing fields are not compared. ``pointer`` is that of the first error.

    A line that ``judge`` printed is one too, so ``id`` is allowed.
    """

    id: Any = None
    outcome: Annotated[Outcome, Field(strict=False)] | None = None
    cause: str | None = None
    rungs: ExpectedRungs | None = None
    pointer: str | None = None
    errors: list[ExpectedError] | None = None
    observed: list[ExpectedError] | None = None
    output: Any = None

    @model_validator(mode="after")
    def _something(self) -> Expect:
        if not self.model_fields_set - {"id"}:
            raise ValueError("this expects nothing; write what the verdict is to be, or leave `expect` out")
        return self


class Expecting(Part):
    """The ``expect`` of a line."""

    expect: Expect


def _id(value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("an id is a text or a whole number")
    return value


class Specimen(BaseModel):
    """One line. Unknown fields, such as notes, are ignored, unless they look like a typo.

    ``schema`` is a JSON Schema, or true for none. The names that rules read may be given; they default to those of a
    new job. ``expect`` is an ``Expect``, and is only read as one on request.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, populate_by_name=True)

    id: Annotated[str | int, BeforeValidator(_id)]
    schema_: Any = Field(alias="schema")
    response: Response
    rules: list[RuleSpec] = Field(default_factory=list, max_length=100)
    max_completion_tokens: int = Field(512, ge=1, le=1_000_000)
    schema_known_bad: bool = False
    input: Any = Field(default_factory=dict)
    turns: dict[str, Any] = Field(default_factory=dict)
    tools: dict[str, Any] = Field(default_factory=dict)
    errors: dict[str, Any] = Field(default_factory=dict)
    signals: dict[str, Any] = Field(default_factory=dict)
    visits: dict[str, list[Any]] = Field(default_factory=dict)
    lists: dict[str, list[Any]] = Field(default_factory=dict)
    calls: dict[str, Any] = Field(default_factory=dict)
    last_tool: dict[str, Any] | None = None
    each: dict[str, Any] | None = None
    expect: Any = None

    @model_validator(mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        """Null in an optional field means missing; a name close to a known one is an error."""
        if not isinstance(value, dict):
            return value
        known = _fields()
        for name in value.keys() - known:
            if close := difflib.get_close_matches(name, known, n=1, cutoff=ALIKE):
                raise ValueError(f"there is no field `{name}` here; did you mean `{close[0]}`?")
        return {name: item for name, item in value.items() if item is not None or name in ("input", "schema")}


@cache
def _fields() -> frozenset[str]:
    return frozenset(field.alias or name for name, field in Specimen.model_fields.items())
