"""Whether two branches of a ``oneOf`` can both fit one value, as far as it can be seen from their keywords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stepladder.lint.audit.kinds import values_of
from stepladder.schemas.canonical import canonical

if TYPE_CHECKING:
    from stepladder.lint.audit.kinds import KindReader
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

Apart: TypeAlias = Literal["kind", "values", "fields", "bounds"]
DEEPEST = 50  # references one after the other
MOST_VALUES = 1000  # of two lists; longer ones are given the benefit of the doubt


def told_apart(one: Path, other: Path, subschemas: Subschemas, kinds: KindReader) -> Apart | None:
    """What tells them apart; None where nothing does, so that a value may fit both."""
    first, second = kinds.of(one), kinds.of(other)
    if first is not None and second is not None and not _broad(first) & _broad(second):
        return "kind"
    left, right = _followed(one, subschemas), _followed(other, subschemas)
    if _values_differ(left, right):
        return "values"
    if _fields_differ(left, right):
        return "fields"
    return "bounds" if _ranges_differ(left, right) else None


def _broad(kinds: frozenset[str]) -> frozenset[str]:
    return kinds | {"integer"} if "number" in kinds else kinds


def _followed(path: Path, subschemas: Subschemas) -> Mapping[str, Any]:
    for _ in range(DEEPEST):
        schema = subschemas.by_path.get(path)
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        target = subschemas.target(reference) if isinstance(reference, str) else None
        if target is None:
            return schema
        path = target
    return {}


def _values_differ(left: Any, right: Any) -> bool:
    ours, theirs = values_of(left), values_of(right)
    if ours is None or theirs is None:
        return False
    if len(ours) + len(theirs) > MOST_VALUES:
        return True
    try:
        return not {canonical(value) for value in ours} & {canonical(value) for value in theirs}
    except ValueError:
        return False


def _fields_differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """A field that both must have, with no value in common; or one that one must have and the other must not."""
    ours, theirs = _fields(left), _fields(right)
    both = _required(left) & _required(right)
    if any(_values_differ(ours.get(name), theirs.get(name)) for name in both):
        return True
    return any(
        needs - set(fields) and closed.get("additionalProperties") is False and "patternProperties" not in closed
        for needs, fields, closed in ((_required(left), theirs, right), (_required(right), ours, left))
    )


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _ranges_differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    pairs = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))
    for low, high in pairs:
        for above, below in ((left, right), (right, left)):
            least, most = above.get(low), below.get(high)
            if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
                return True
    return False
