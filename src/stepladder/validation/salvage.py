"""What can be kept of an answer that was not accepted, where the document's author asked for that.

Nothing here mends an answer: what comes out is a remnant, with everything said that is lost or unsure about it. It is
shown to people and programs beside the failure, and the machine never reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.outcomes import Outcome
from stepladder.validation.complaints import reason
from stepladder.validation.fragment import Losses, Origins, Path, Stop, read_fragment
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepladder.schemas.answer import Violation
    from stepladder.schemas.degraded import Loss
    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.fragment import Fragment
    from stepladder.validation.schema import Schema

MAX_BYTES = 128 * 1024
"""Of a larger answer nothing is kept, so that a worker is never busy with it for long: half a second at worst."""
MAX_WEIGHT = 5_000_000
"""The same for what is read out of it: of each value the length of its pointer, and ``A_VALUE``."""
A_VALUE = 100
DOCUMENTS = 4
"""Objects and arrays in one answer that are tried, where text stands around them."""
ROUNDS = 3
"""Times that the schema is asked again after something was left out."""

SALVAGED: tuple[Outcome, ...] = (
    Outcome.TRUNCATION,
    Outcome.PARSE_FAILURE,
    Outcome.SCHEMA_VIOLATION,
    Outcome.SEMANTIC,
)
"""Of these outcomes' answers something may be kept. A refusal, an empty answer and a lost connection leave nothing."""

_OPENING = re.compile(r'[{\[][ \t\n\r]*+(?:["{}\[\]]|-?[0-9]|(?:true|false|null|NaN|-?Infinity)\b)')
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)
_OF_ITS_MEMBERS = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "required", "dependentRequired", "minProperties",
    "maxProperties", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "unevaluatedItems", "anyOf", "oneOf", "not",
)  # fmt: skip
"""Keywords that an object or array breaks by what it holds or lacks: it is no wrong value itself, and is kept."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What is kept, and all that is lost or unsure; pointers are into the answer as the model wrote it."""

    value: Json
    lost: tuple[Loss, ...]


def salvage(content: bytes, schema: Schema, outcome: Outcome) -> Salvaged | None:
    """What can be kept of the exact ``content`` of an answer that the ladder gave ``outcome``; None if nothing can.

    The first document in it of which something is left, closed behind its last whole value where it breaks off,
    without the members that break the schema. Never raises, and takes time in proportion to the content and to what
    the schema finds in it. Whether the rules hold is not asked.
    """
    if outcome not in SALVAGED or len(content) > MAX_BYTES:
        return None
    if isinstance(parsed := parse(content), Parsed):
        losses = Losses()
        if outcome is Outcome.TRUNCATION:
            if isinstance(parsed.value, int | float) and not isinstance(parsed.value, bool):
                return None  # more digits may have been to come
            losses.add((), "the answer was cut off; the document is closed, and what was to follow it is not known")
        return _fitting(parsed.value, schema, losses, Origins())
    text = content.decode("utf-8", "replace")
    for start, fragment in _documents(text):
        losses = _around_it(text, start, fragment, outcome)
        if text.encode() != content:
            losses.add((), "bytes that are no character stand in it as U+FFFD")
        losses.take(fragment.losses)
        if (salvaged := _fitting(fragment.value, schema, losses, fragment.origins)) is not None:
            return salvaged
    return None


def _documents(text: str) -> Iterator[tuple[int, Fragment]]:
    """The objects and arrays in a text, and where each begins. None is looked for inside another."""
    at: int | None = 0
    for _ in range(DOCUMENTS):
        if at is None or (opening := _OPENING.search(text, at)) is None:
            return
        fragment = read_fragment(text, opening.start())
        yield opening.start(), fragment
        at = fragment.end if fragment.stopped is None else _behind(text, opening.start())


def _behind(text: str, start: int) -> int | None:
    """Where the brackets that open at ``start`` are all closed again, whatever stands between them."""
    depth = 0
    for sign in _BRACKET.finditer(text, start):
        depth += 1 if sign[0] in "{[" else -1 if sign[0] in "}]" else 0
        if depth == 0:
            return sign.end()
    return None


def _around_it(text: str, start: int, fragment: Fragment, outcome: Outcome) -> Losses:
    """What is lost before a document, behind it, and where it breaks off."""
    losses = Losses()
    if text[:start].strip():
        losses.add((), f"{_what(text[:start])} before the document is left out")
    if fragment.stopped is not None:
        losses.add(fragment.at, _why(fragment.stopped, outcome))
    else:
        if text[fragment.end :].strip():
            losses.add((), f"{_what(text[fragment.end :])} behind the document is left out")
        if outcome is Outcome.TRUNCATION:
            losses.add((), "the answer was cut off behind this document; what was to follow is not known")
    return losses


def _what(text: str) -> str:
    return "the Markdown fence" if text.strip().startswith(("```", "~~~")) else "the text"


def _why(stopped: Stop, outcome: Outcome) -> str:
    match stopped:
        case Stop.TOO_DEEP:
            return "nested too deep to be read; from here on the answer is left out"
        case Stop.ENDED if outcome is Outcome.TRUNCATION:
            return "the answer was cut off here; what is not finished, and all that was to follow, is lost"
        case Stop.ENDED:
            return "the answer ends here, before its document does; what is not finished is lost"
        case Stop.NO_JSON:
            return "from here on the answer is no JSON, and is left out"


def _fitting(value: Any, schema: Schema, losses: Losses, origins: Origins) -> Salvaged | None:
    """The value without what breaks the schema, as far as that can be taken out of something."""
    if _weight(value) > MAX_WEIGHT:
        return None
    for _ in range(ROUNDS):
        found = schema.violations(value)
        wrong = _wrong(value, found)
        if not wrong:
            break
        for path, violation in wrong.items():
            losses.add(_origin(value, path, origins), f"left out, since it breaks the schema: {violation.reason}")
        if () in wrong:
            return None
        _take_out(value, wrong, origins)
    else:
        found = schema.violations(value)
    for violation in found:
        where = _origin(value, _steps(value, violation.pointer), origins)
        losses.add(where, f"still breaks the schema: {violation.reason}")
    nothing = value is None or value in ("", {}, [])
    return None if nothing and losses.all else Salvaged(value, losses.all)


def _weight(value: Any) -> int:
    """What it may cost to say of everything in a value that it is wrong: a long name counts for all that is below."""
    weight, waiting = 0, [(value, 0)]
    while waiting:
        holder, length = waiting.pop()
        weight += A_VALUE + length
        if isinstance(holder, dict):
            waiting.extend((item, length + 1 + len(name)) for name, item in holder.items())
        elif isinstance(holder, list):
            waiting.extend((item, length + 1 + len(str(n))) for n, item in enumerate(holder))
    return weight


def _wrong(value: Any, found: Iterable[Violation]) -> dict[Path, Violation]:
    """What has to go, each with the violation that it is for."""
    wrong: dict[Path, Violation] = {}
    named: dict[tuple[str, str], dict[str, Path]] = {}
    for violation in found:
        path = _steps(value, violation.pointer)
        at, keyword = _at(value, path), violation.source
        if not isinstance(at, dict | list) or keyword not in _OF_ITS_MEMBERS:
            wrong[path] = violation
        elif isinstance(at, dict) and keyword in ("additionalProperties", "unevaluatedProperties"):
            # The violation is the object's, and its reason names the member.
            members = named.setdefault((violation.pointer, keyword), {})
            if not members:
                members |= {reason(keyword, name, at): (*path, name) for name in at}
            if violation.reason in members:
                wrong[members[violation.reason]] = violation
    return wrong


def _take_out(value: Any, paths: Mapping[Path, object], origins: Origins) -> None:
    """Takes out what stands at the paths, the innermost first, so that the others still lead to where they led."""
    by_holder: dict[Path, set[str | int]] = {}
    for path in paths:
        by_holder.setdefault(path[:-1], set()).add(path[-1])
    for holder_path in sorted(by_holder, key=len, reverse=True):
        holder, steps = _at(value, holder_path), by_holder[holder_path]
        if isinstance(holder, list):
            kept = [n for n in range(len(holder)) if n not in steps]
            places = origins.of(holder)
            origins.put(holder, [places[n] for n in kept])
            holder[:] = [holder[n] for n in kept]
        else:
            for step in steps:
                del holder[step]


def _origin(value: Any, path: Path, origins: Origins) -> Path:
    """The path that led there in the answer, before lists in it lost items."""
    led: list[str | int] = []
    for step in path:
        led.append(origins.of(value)[step] if isinstance(step, int) else step)
        value = value[step]
    return tuple(led)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _steps(value: Any, pointer: str) -> Path:
    """The steps of a pointer into ``value``."""
    path: list[str | int] = []
    for part in pointer.split("/")[1:]:
        step = int(part) if isinstance(value, list) else part.replace("~1", "/").replace("~0", "~")
        path.append(step)
        value = value[step]
    return tuple(path)
