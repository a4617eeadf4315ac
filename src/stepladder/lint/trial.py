"""Every expression of a document, tried on sample values before a job has to: what can never be evaluated is an error,
what cannot be evaluated for some answer that fits its schema is a warning.

Only what is known is judged. A name without a schema, such as the result of a tool that says nothing of it, ends the
trial of whatever reads it. That a rule holds for no sample is no fault: samples know nothing of sums.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from stepladder.lint.maker import SpentError, Work
from stepladder.lint.members import Standing, names_beside, standing
from stepladder.lint.samples import Known, NotKnownError, Samples
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer
from stepladder.validation.expressions import EvaluationFailure, Expression, Fault, Purse
from stepladder.validation.jsonmath import kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stepladder.lint.samples import Name
    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.schema import Schema
    from stepladder.workflows.machine import State

STEPS = 600_000
"""For all expressions of a document, some 0.2 s of one core: what is left untried then stays untried."""
WORK = 200_000
"""For the samples of all schemas of a document, which takes as long at the worst."""
WORK_EACH = 10_000
_STEPS_A_TRIAL = 20
_ROOTED = ("turns", "lists", "tools", "calls", "errors", "signals", "visits")
_HAS = re.compile(r"\bhas\s*\(")
_COMPARED = 8  # failures, of which the one on the shortest sample is told
_SHOWN = 120  # characters of a sample in a message


@dataclass(frozen=True, slots=True)
class Tried:
    """An expression, and the path of keys and indices at which it stands in the document."""

    where: tuple[str | int, ...]
    expression: Expression

    @property
    def state(self) -> str:
        return str(self.where[1])

    @property
    def is_rule(self) -> bool:
        return self.where[2] == "rules"


class Mark(Enum):
    """What a sample came to where there is a value or nothing to say."""

    GOOD = "good"
    BROKEN = "broken"  # a rule that is false
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Failed:
    """``standing`` says how the member that was missing stands in its schema."""

    failure: EvaluationFailure
    names: Mapping[Name, Json]
    standing: Standing = Standing.NAMED


@dataclass
class Trial:
    """What became of one expression, sample by sample; ``outputs`` are the identities of the turn's output in each."""

    tried: Tried
    marks: list[Mark | Failed] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    @property
    def failures(self) -> list[Failed]:
        return [mark for mark in self.marks if isinstance(mark, Failed)]


def try_expressions(
    expressions: Sequence[Tried], input_schema: Schema | None, states: Mapping[str, State], *, whole: bool
) -> Iterator[Finding]:
    """``states`` are those that compiled, and ``whole`` says that all did: without it, only what never works is told.

    All are warnings: samples are no proof, and what cannot be evaluated fails closed while the job runs.
    """
    work = min(WORK_EACH, WORK // (len(states) + 1))
    samples = Samples(input_schema, states, whole, work, Purse(STEPS))
    most = max(4, STEPS // (_STEPS_A_TRIAL * 3 * max(1, len(expressions))))
    by_state: dict[str, list[Trial]] = {}
    for tried in expressions:
        if samples.steps.left > 0 and tried.state in states:
            by_state.setdefault(tried.state, []).append(_tried(tried, samples, most))
    for trials in by_state.values():
        for trial in trials:
            found = _finding(trial, [other for other in trials if other is not trial], samples)
            if found is not None and (whole or found.code.endswith("never_works")):
                yield found


def _tried(tried: Tried, samples: Samples, most: int) -> Trial:
    trial = Trial(tried)
    names = _names(tried.expression)
    lists = {name: samples.of(name, tried.state) for name in names}
    absent = [name for name in names if samples.absent(name, tried.state)]
    for known in _scenes({name: values for name, values in lists.items() if values and name not in absent}, most):
        if samples.steps.left <= 0:
            break
        samples.steps.left -= _STEPS_A_TRIAL
        trial.marks.append(_mark(tried, known, absent, samples))
        trial.outputs.append(id(known.get(("output",))))
    return trial


def _names(expression: Expression) -> list[Name]:
    """The names that samples are wanted for. What is read whole, such as all ``turns``, is not known."""
    found = {path[:2] if path[0] in _ROOTED else path[:1] for path in expression.names}
    return sorted(name for name in found if len(name) == (2 if name[0] in _ROOTED else 1))


def _scenes(lists: Mapping[Name, Sequence[Json]], most: int) -> Iterator[dict[Name, Json]]:
    """One sample for each name at a time: first those of a kind, the usual with the usual, then across each other."""
    longest = max(map(len, lists.values()), default=1)
    for index in range(min(longest, most)):
        yield {name: values[index % len(values)] for name, values in lists.items()}
    if len(lists) > 1:
        for index in range(min(longest, most - longest)):
            yield {name: values[(index * 7 + turn) % len(values)] for turn, (name, values) in enumerate(lists.items())}


def _scope(known: Mapping[Name, Json], absent: Iterable[Name]) -> Known:
    roots: dict[str, Json] = {}
    held: dict[str, dict[str, Json]] = {root: {} for root, _ in absent}
    for name, value in known.items():
        if len(name) == 1:
            roots[name[0]] = value
        else:
            held.setdefault(name[0], {})[name[1]] = value
    missing = {root: [state for of, state in absent if of == root] for root in held}
    return Known({**roots, **{root: Known(values, missing[root]) for root, values in held.items()}})


def _mark(tried: Tried, known: Mapping[Name, Json], absent: Sequence[Name], samples: Samples) -> Mark | Failed:
    try:
        value = tried.expression.evaluate(_scope(known, absent), samples.steps)
    except NotKnownError:
        return Mark.NOT_KNOWN
    if isinstance(value, EvaluationFailure):
        if value.fault is Fault.STEPS:
            return Mark.NOT_KNOWN
        stands = _standing(value.missing, tried, samples) if value.fault is Fault.MISSING else Standing.NAMED
        return Mark.NOT_KNOWN if stands is Standing.UNDESCRIBED else Failed(value, known, stands)
    if tried.is_rule and not isinstance(value, bool):
        return Failed(EvaluationFailure(f"it gives {kind(value)}, not true or false", fault=Fault.KIND), known)
    return Mark.BROKEN if value is False else Mark.GOOD


def _path(missing: str | None) -> tuple[Name, tuple[str, ...]] | None:
    """The name of what was missing, and its members; None where that is no plain path."""
    if missing is None or "[" in missing:
        return None
    steps = tuple(missing.split("."))
    count = 2 if steps[0] in _ROOTED else 1
    return steps[:count], steps[count:]


def _standing(missing: str | None, tried: Tried, samples: Samples) -> Standing:
    path = _path(missing)
    if path is None:
        return Standing.NAMED
    if not path[1]:
        return Standing.IMPOSSIBLE  # whatever may be there was there
    schema = samples.schema(path[0], tried.state)
    try:
        return Standing.NAMED if schema is None else standing(schema.schema, path[1], Work(1_000).spend)
    except SpentError:
        return Standing.UNDESCRIBED


def _finding(trial: Trial, beside: Iterable[Trial], samples: Samples) -> Finding | None:
    failures = trial.failures
    if not failures:
        return None
    never = len(failures) == len(trial.marks)
    impossible = [failed for failed in failures if failed.standing is Standing.IMPOSSIBLE]
    if impossible:
        return _impossible(trial, impossible, samples, never=never)
    of_kind = [failed for failed in failures if failed.failure.fault is Fault.KIND]
    certain = never and of_kind and all(failed.failure.fault is not Fault.CONTENT for failed in failures)
    if certain and not _may_read_more(trial.tried, samples):
        failed = _shortest(of_kind)
        message = f"this {_what(trial)} can be evaluated for none of the samples: {failed.failure.reason}"
        message += _shown(failed)
        return _told(trial, "never_works", message, _remedy(failed, trial, samples))
    if trial.tried.is_rule and any(_guards(other, trial) for other in beside):
        return None
    failed = _shortest(failures)
    when = "for any of the samples" if never else "for some values that fit their schemas"
    then = "counts as broken" if trial.tried.is_rule else "fails the job"
    message = f"this {_what(trial)} cannot be evaluated {when}, and then {then}: {failed.failure.reason}"
    message += _shown(failed)
    return _told(trial, "may_not_work", message, _remedy(failed, trial, samples))


def _may_read_more(tried: Tried, samples: Samples) -> bool:
    """Whether ``has`` may ask for a member that no sample has, though a value may have it."""
    if _HAS.search(tried.expression.source) is None:
        return False
    paths = (".".join(path) for path in tried.expression.names)
    return any(_standing(path, tried, samples) in (Standing.OPEN, Standing.UNDESCRIBED) for path in paths)


def _impossible(trial: Trial, failures: list[Failed], samples: Samples, *, never: bool) -> Finding:
    failed = _shortest(failures)
    remedy = _remedy(failed, trial, samples)
    path = _path(failed.failure.missing)
    if path is not None and not path[1]:
        message = f"`{failed.failure.missing}` can never be there yet: no path leads from `{path[0][1]}` here"
        return Finding("too_early", pointer(trial.tried.where), message, remedy, Severity.WARNING)
    message = f"`{failed.failure.missing}` can never be there: the schema has no such member"
    if never:
        message = f"this {_what(trial)} can never be evaluated: {message}{_shown(failed)}"
        return _told(trial, "never_works", message, remedy)
    message = f"this {_what(trial)} cannot be evaluated for some values: {message}{_shown(failed)}"
    return _told(trial, "may_not_work", message, remedy)


def _guards(other: Trial, trial: Trial) -> bool:
    """Whether another rule of the turn is broken by every answer that this one fails on, and not by all answers."""
    if not other.tried.is_rule or Mark.GOOD not in other.marks:
        return False
    broken = {output for mark, output in zip(other.marks, other.outputs, strict=True) if mark is Mark.BROKEN}
    return all(
        output in broken for mark, output in zip(trial.marks, trial.outputs, strict=True) if isinstance(mark, Failed)
    )


def _told(trial: Trial, code: str, message: str, remedy: str) -> Finding:
    return Finding(f"{_what(trial)}_{code}", pointer(trial.tried.where), message, remedy, Severity.WARNING)


def _what(trial: Trial) -> str:
    return "rule" if trial.tried.is_rule else "expression"


def _shortest(failures: Iterable[Failed]) -> Failed:
    return min(islice(failures, _COMPARED), key=lambda failed: len(json.dumps(list(failed.names.values()))))


def _shown(failed: Failed) -> str:
    """The sample that it failed on."""
    parts = [f"{'.'.join(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in failed.names.items()]
    text = ", ".join(parts)
    return f"; so with {text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}" if parts else ""


def _remedy(failed: Failed, trial: Trial, samples: Samples) -> str:
    missing = failed.failure.missing
    if failed.failure.fault is Fault.KIND:
        return "mend it, or give what it reads one `type` in its schema"
    if failed.failure.fault is Fault.CONTENT:
        return "rule such values out by the schema (`minimum`, `minItems`, `format`), or test for them first"
    path = _path(missing)
    if path is None:
        return "test that it is there first, with `has()` or `size()`"
    if not path[1]:
        return "test it with `has()`, read another, or lead an edge here"
    schema = samples.schema(path[0], trial.tried.state)
    beside = [] if schema is None else names_beside(schema.schema, path[1], Work(10_000).spend)
    close = difflib.get_close_matches(path[1][-1], [name for name in beside if name != path[1][-1]], n=1, cutoff=0.7)
    if failed.standing is not Standing.NAMED:
        if close:
            return f"did you mean `{close[0]}`?"
        if failed.standing is Standing.IMPOSSIBLE:
            return f"its members are {', '.join(beside)}" if beside else "mend the name, or the schema"
    otherwise = "true" if trial.tried.is_rule else "null"
    return f"write `has({missing}) ? ... : {otherwise}`, or make it `required`"
