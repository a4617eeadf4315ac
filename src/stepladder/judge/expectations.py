"""A verdict as ``stepladder judge`` prints it, and how it differs from what a line expects."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from stepladder.schemas.canonical import identity
from stepladder.schemas.specimen import Expecting
from stepladder.workflows.load import mistakes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.finding import Finding
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.specimen import Expect


class Difference(NamedTuple):
    """One field of a verdict that is not as expected: ``rungs.schema``, ``errors``."""

    field: str
    expected: Json
    got: Json


def told(name: str | int, verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON, with ``name`` as its id. ``observed`` are broken rules that reject nothing."""
    return {
        "id": name,
        "outcome": verdict.outcome.value,
        "cause": verdict.cause,
        "rungs": {rung: state.value for rung, state in asdict(verdict.rungs).items()},
        "errors": [error.as_json() for error in verdict.errors],
        "output": verdict.output,
        "observed": [error.as_json() for error in verdict.observed],
    }


def read_expect(value: Json) -> Expect | tuple[Finding, ...]:
    """What a line expects, or what is wrong with its ``expect``; pointers are into the line."""
    line = {"expect": value}
    try:
        return Expecting.model_validate(line).expect
    except ValidationError as error:
        return tuple(mistakes(error, line))


def differences(expect: Expect, verdict: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Every field that is not as expected, in the verdict's order. Numbers compare as in JSON: 36 is 36.0."""
    return tuple(_differences(expect, verdict))


def _differences(expect: Expect, verdict: Mapping[str, Any]) -> Iterator[Difference]:
    wanted = expect.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"id"})
    for field, expected in wanted.items():
        match field:
            case "rungs":
                for rung, state in (expected or {}).items():
                    if verdict["rungs"][rung] != state:
                        yield Difference(f"rungs.{rung}", state, verdict["rungs"][rung])
            case "pointer":
                got = verdict["errors"][0]["pointer"] if verdict["errors"] else None
                if got != expected:
                    yield Difference("pointer", expected, got)
            case "errors" | "observed":
                if not _match(expected or [], verdict[field]):
                    yield Difference(field, expected, verdict[field])
            case _:
                if identity(expected) != identity(verdict[field]):
                    yield Difference(field, expected, verdict[field])


def _match(expected: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]) -> bool:
    pairs = zip(expected, got, strict=False)
    return len(expected) == len(got) and all(one.items() <= other.items() for one, other in pairs)
