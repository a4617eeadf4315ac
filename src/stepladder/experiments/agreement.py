"""One variant many times: how often each field of the result, and of each turn's output, came out the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.schemas.experiment import FieldAgreement
from stepladder.schemas.pointer import pointer
from stepladder.validation.subschemas import Subschemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stepladder.schemas.jsontypes import Json

RESULT = "result"
MAX_DEPTH = 20  # nested objects that are searched for required fields
MAX_FIELDS = 1000  # of one place

Path = tuple[str | int, ...]
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that a job gave in one place: ``result``, or a state and its visit. A turn's has a ``schema``."""

    where: str
    value: Json
    schema: Json = None


def fields(values: Iterable[Seen]) -> list[FieldAgreement]:
    """For each place the whole value, then its fields.

    Objects and lists are described by what they contain, unless a required field holds them.
    """
    places: defaultdict[str, list[Seen]] = defaultdict(list)
    for seen in values:
        places[seen.where].append(seen)
    found: list[FieldAgreement] = []
    for where, seen_there in places.items():
        required = set(required_paths(seen_there[0].schema))
        leaves = [path for seen in seen_there for path in _leaves(seen.value)]
        paths = dict.fromkeys([(), *leaves, *sorted(required, key=pointer)])
        found += [
            _field(where, path, [_at(seen.value, path) for seen in seen_there], required=path in required)
            for path in list(paths)[:MAX_FIELDS]
        ]
    return found


def _field(where: str, path: Path, values: Sequence[Any], required: bool) -> FieldAgreement:
    keys = ["missing" if value is MISSING else identity(value) for value in values]
    [(most, times)] = Counter(keys).most_common(1)
    common = values[keys.index(most)]
    return FieldAgreement(
        where=where,
        pointer=pointer(path),
        jobs=len(values),
        agreement=times / len(values),
        distinct=len(set(keys)),
        missing=sum(value is MISSING for value in values),
        common=None if common is MISSING else common,
        required=required,
        empty=sum(_is_empty(value) for value in values) / len(values) if required else None,
    )


def _is_empty(value: Any) -> bool:
    """Null, blank, or without elements. False and 0 are content."""
    if isinstance(value, str):
        return not value.strip()
    return value is MISSING or value is None or (isinstance(value, Mapping | list | tuple) and not value)


def _leaves(value: Json, path: Path = ()) -> Iterator[Path]:
    children: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list | tuple):
        children = enumerate(value)
    inner = [leaf for step, child in children for leaf in _leaves(child, (*path, step))]
    yield from inner or [path]


def _at(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return MISSING
    return value


def required_paths(schema: Json) -> tuple[Path, ...]:
    """The fields that a schema requires, and those that these require in turn, through local references.

    Those required only in a branch of ``anyOf`` and its like, or inside a list, are left out.
    """
    return tuple(_required(Subschemas(schema), schema, ()))


def _required(subschemas: Subschemas, schema: Json, path: Path) -> Iterator[Path]:
    hops = 0
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and hops < MAX_DEPTH:
        target = subschemas.target(reference) if reference.startswith("#") else None
        schema, hops = (None if target is None else subschemas.by_path.get(target)), hops + 1
    if not isinstance(schema, Mapping) or len(path) >= MAX_DEPTH:
        return
    names, properties = schema.get("required"), schema.get("properties")
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str):
            yield (*path, name)
            inner = properties.get(name) if isinstance(properties, Mapping) else None
            yield from _required(subschemas, inner, (*path, name))
