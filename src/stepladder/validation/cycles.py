"""Circular references that never reach a value: schemas that no document can satisfy.

A tree is a fine recursive schema, since a leaf ends it. Two shapes do not end. In the first a schema applies itself to
the very same value (``{"$ref": "#"}``), which a validator could follow forever. In the second each value must contain
another of the same kind (a required ``child`` that is the same schema again), so only an endless document matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stepladder.validation.subschemas import Subschemas, children, references

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

# These apply to the same value that their parent does.
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})


def endless(subschemas: Subschemas) -> dict[Path, str]:
    """The schemas whose reference never ends, by path, each with the reason."""
    found = {
        path: "has a reference that leads back to itself on the same value"
        for path in circles({path: set(_same_value(subschemas, path)) for path in subschemas.by_path})
        if references(subschemas.by_path[path])
    }
    for path in subschemas.by_path.keys() - _inhabited(subschemas):
        if references(subschemas.by_path[path]):
            found.setdefault(path, "has an endless reference: each value must contain another of the same kind")
    return found


def recursive(subschemas: Subschemas) -> set[Path]:
    """Every schema that contains itself, or that leads from such a schema to another."""
    return circles(
        {
            path: {path + step for step, _ in children(schema) if step[0] not in ("$defs", "definitions")}
            | set(_targets(subschemas, schema))
            for path, schema in subschemas.by_path.items()
        }
    )


def circles(after: dict[Path, set[Path]]) -> set[Path]:
    """Every place on a circle of the steps in ``after``, or between two circles. Uses up ``after``."""
    before: dict[Path, set[Path]] = {path: set() for path in after}
    for path, steps in after.items():
        for step in steps:
            before[step].add(path)
    for outward, inward in ((after, before), (before, after)):  # what leads nowhere, then what nothing leads to
        waiting = [path for path, steps in outward.items() if not steps]
        while waiting:
            path = waiting.pop()
            outward.pop(path)
            for other in inward.pop(path):
                if other in outward:
                    outward[other].discard(path)
                    if not outward[other]:
                        waiting.append(other)
    return set(after)


def _same_value(subschemas: Subschemas, path: Path) -> list[Path]:
    schema = subschemas.by_path[path]
    inside = [path + step for step, _ in children(schema) if step[0] in _IN_PLACE]
    return inside + _targets(subschemas, schema)


def _targets(subschemas: Subschemas, schema: Json) -> list[Path]:
    found = [subschemas.target(reference) for reference in references(schema).values()]
    return [path for path in found if path is not None and path in subschemas.by_path]


def _inhabited(subschemas: Subschemas) -> set[Path]:
    """The schemas that some finite document may satisfy, as far as references decide it.

    The least fixed point: nothing counts until what it needs counts. Schemas that are impossible for other reasons
    (``false``, a minimum above the maximum) are not this module's concern, and count.
    """
    needs = {path: _needs(subschemas, path, schema) for path, schema in subschemas.by_path.items()}
    needed_by: dict[Path, list[Path]] = {}
    for path, clauses in needs.items():
        for way in (way for clause in clauses for way in clause):
            needed_by.setdefault(way, []).append(path)
    found: set[Path] = set()
    waiting = list(needs)
    while waiting:
        path = waiting.pop()
        if path not in found and all(any(way in found for way in clause) for clause in needs[path]):
            found.add(path)
            waiting.extend(needed_by.get(path, ()))
    return found


def _needs(subschemas: Subschemas, path: Path, schema: Json) -> list[list[Path]]:
    """What must be possible for this schema to be: all of the clauses, each by any one of its ways."""
    if not isinstance(schema, Mapping):
        return []
    clauses = [[target] for target in _targets(subschemas, schema)]
    held = dict(children(schema))
    clauses += [[path + step] for step in held if step[0] == "allOf"]
    for keyword in ("anyOf", "oneOf"):
        if ways := [path + step for step in held if step[0] == keyword]:
            clauses.append(ways)
    required = schema.get("required")
    if schema.get("type") == "object" and isinstance(required, Sequence):
        clauses += [[path + step] for step in held if step[0] == "properties" and step[1] in required]
    least = schema.get("minItems")
    if schema.get("type") == "array" and isinstance(least, int | float):
        prefix = [step for step in held if step[0] == "prefixItems"]
        clauses += [[path + step] for step in prefix[: int(least)]]
        if ("items",) in held and least > len(prefix):
            clauses.append([(*path, "items")])
    return clauses
