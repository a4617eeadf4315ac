"""A document's text as a document: every mistake of its shape at once, each with its place and its remedy."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stepladder.schemas.document import (
    KINDS,
    MAP,
    PLAIN,
    Ask,
    Call,
    ChildWorkflow,
    Chosen,
    Each,
    End,
    FanOut,
    Limits,
    Loop,
    Part,
    Retry,
    RuleSpec,
    Sampling,
    Wait,
    WaitSpec,
    Workflow,
)
from stepladder.schemas.finding import Finding
from stepladder.schemas.pointer import pointer
from stepladder.schemas.source import Source, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_core import ErrorDetails


# Steps of a path by which pydantic says that a key is meant, or which branch of a union it took.
NOT_IN_THE_DOCUMENT = ("[key]", MAP, PLAIN, *(f"<{kind}>" for kind in KINDS), "<word>", "<number>")

REMEDIES = {
    "next": "write the name of a state, or a map from action words to names of states",
    "on_failure": "write a map from failure words to names of states",
    "arguments": "write one CEL expression, or a map from argument names to CEL expressions",
    "result": "write one CEL expression, or a map from names to CEL expressions",
    "show": "write one CEL expression, or a map from names to CEL expressions",
    "output": "write a JSON Schema, as a map",
    "input": "write a JSON Schema, as a map",
    "schema": "write a JSON Schema, as a map",
    "end": "write `end: succeeded` or `end: failed`",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document of the right shape, and the positions of its values in the text."""

    document: Workflow
    source: Source


def load_document(text: str) -> Loaded | tuple[Finding, ...]:
    """Reads a workflow document, YAML or JSON. Whether the machine in it holds is for ``compile_workflow`` to say."""
    source = read(text)
    if not isinstance(source, Source):
        return tuple(source)
    if not isinstance(source.value, dict):
        return placed((Finding("not_a_map", "", "a workflow document is a map", "start with `name: ...`"),), source)
    try:
        return Loaded(Workflow.model_validate(source.value), source)
    except ValidationError as error:
        return placed(mistakes(error, source.value), source)


def mistakes(error: ValidationError, value: Any) -> list[Finding]:
    """What pydantic found wrong with the shape of ``value``, for the person who wrote it."""
    return [_finding(detail, value) for detail in error.errors(include_url=False)]


def placed(findings: Iterable[Finding], source: Source) -> tuple[Finding, ...]:
    """The findings with the lines and columns of their pointers, in the order of the text."""
    with_places = []
    for finding in findings:
        line, column = source.place(finding.pointer)
        with_places.append(
            Finding(finding.code, finding.pointer, finding.message, finding.remedy, finding.severity, line, column)
        )
    return tuple(sorted(with_places, key=lambda finding: (finding.line or 0, finding.column or 0)))


def _finding(detail: ErrorDetails, document: Any) -> Finding:
    path = _path(detail["loc"], document)
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_field(path, document)
        case "missing":
            message, remedy = f"the field `{path[-1]}` is missing", f"add `{path[-1]}: ...` here"
            return Finding("missing_field", pointer(path[:-1]), message, remedy)
        case "union_tag_not_found" | "union_tag_invalid":
            return _no_kind(path, detail["input"])
        case "string_pattern_mismatch":
            message = f"{detail['input']!r} is not an allowed name"
            return Finding("bad_name", pointer(path), message, f"it must match {detail['ctx']['pattern']}")
        case "value_error":
            return Finding("bad_value", pointer(path), detail["msg"].removeprefix("Value error, "))
        case kind:
            shown = detail["msg"][0].lower() + detail["msg"][1:]
            remedy = next((REMEDIES[step] for step in reversed(path) if step in REMEDIES), "")
            if kind == "string_type" and not isinstance(detail["input"], dict | list):
                remedy = "put it in quotes"
            return Finding("bad_value", pointer(path), f"{_shown(detail['input'])} is not valid here: {shown}", remedy)


def _path(location: Sequence[str | int], document: Any) -> list[str | int]:
    """The steps that lead through the document, whose own keys may look like a branch of a union."""
    path: list[str | int] = []
    here: Any = document
    for step in location:
        if step in (here if isinstance(here, dict) else range(len(here) if isinstance(here, list) else 0)):
            here = here[step]
        elif step in NOT_IN_THE_DOCUMENT:
            continue
        path.append(step)
    return path


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_kind(path: Sequence[str | int], state: Any) -> Finding:
    words = [word for word in KINDS if isinstance(state, dict) and word in state]
    message = (
        f"a state is of one kind, and this one has {' and '.join(f'`{word}`' for word in words)}"
        if words
        else "this state is of no kind"
    )
    close = [word for key in (state if isinstance(state, dict) else ()) for word in _close(str(key), KINDS)]
    remedy = "give it exactly one of `ask`, `tool`, `wait`, `call` or `end`"
    return Finding(
        "state_kind", pointer(path), message, f"did you mean `{close[0]}`?" if close and not words else remedy
    )


def _unknown_field(path: Sequence[str | int], document: Any) -> Finding:
    name = str(path[-1])
    model = _part_at(path[:-1], document)
    known = sorted(field.alias or word for word, field in model.model_fields.items())
    close = _close(name, known)
    remedy = f"did you mean `{close[0]}`?" if close else f"allowed here: {', '.join(known)}"
    return Finding("unknown_field", pointer(path), f"there is no field `{name}` here", remedy)


def _close(word: str, known: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(word, known, n=1)


def _part_at(path: Sequence[str | int], document: Any) -> type[Part]:
    match list(path):
        case ["states", name]:
            state = document["states"][name]
            kinds: dict[str, type[Part]] = {"ask": Ask, "tool": Call, "wait": Wait, "call": ChildWorkflow, "end": End}
            return next(model for word, model in kinds.items() if word in state)
        case ["states", _, "tool"]:
            return Chosen
        case ["states", name, "each"]:
            return FanOut if "call" in document["states"][name] else Each
        case ["limits"]:
            return Limits
        case ["limits", "loop"]:
            return Loop
        case [*_, "sampling"]:
            return Sampling
        case [*_, "retry"]:
            return Retry
        case [*_, "rules", int()]:
            return RuleSpec
        case [*_, "wait"]:
            return WaitSpec
        case []:
            return Workflow
        case _:
            return Part
