"""The same job many times: how often each field of its result, and of each turn's output, came out the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.schemas.pointer import pointer
from stepladder.validation.subschemas import Subschemas

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.pointer import Path

RESULT = "result"
DEEPEST = 20  # objects in objects that are looked through for required fields
MOST_FIELDS = 1000  # of one place


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that a job gave in one place: ``result``, or a state and which visit to it. ``schema`` is a turn's."""

    where: str
    value: Json
    schema: Json = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one place, in all jobs that came there.

    ``jobs`` are how many did, ``agreement`` the share of the most frequent value, ``common``, among them (a field that
    is not there is a value as well), ``distinct`` how many values there were, and ``missing`` how often it was not
    there. ``empty`` is of a required field alone: the share of jobs where it was missing, null, or had nothing in it.
    """

    where: str
    pointer: str
    jobs: int
    agreement: float
    distinct: int
    missing: int
    common: Json
    required: bool
    empty: float | None

    def as_json(self) -> JsonObject:
        return {name: getattr(self, name) for name in self.__slots__}


def fields(jobs: Sequence[Sequence[Seen]]) -> tuple[Field, ...]:
    """Of each place first the whole value, then its fields, in the order in which they were seen."""
    places: defaultdict[str, list[Seen]] = defaultdict(list)
    for job in jobs:
        for seen in job:
            places[seen.where].append(seen)
    return tuple(field for where, seen in places.items() for field in _of_place(where, seen))


def _of_place(where: str, seen: Sequence[Seen]) -> Iterator[Field]:
    """A field whose values are objects or lists is told by what is in them, unless it is required itself."""
    required = {path for one in seen[:1] for path in required_paths(one.schema)}
    leaves = [dict(_leaves(one.value)) for one in seen]
    told = list(dict.fromkeys([(), *(path for one in leaves for path in one), *sorted(required, key=pointer)]))
    for path in told[:MOST_FIELDS]:
        yield _field(where, path, [_at(one.value, path) for one in seen], required=path in required)


class _Missing:
    """A field that is not there."""


MISSING = _Missing()


def _field(where: str, path: Path, values: Sequence[Any], *, required: bool) -> Field:
    keys: list[Hashable] = ["missing" if value is MISSING else identity(value) for value in values]
    [(most, times)] = Counter(keys).most_common(1)
    common = values[keys.index(most)]
    return Field(
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
    """False and 0 are answers; blanks alone are none."""
    if value is MISSING or value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, Mapping | list | tuple) and not value


def _leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, Mapping) and step in value:
            value = value[str(step)]
        elif isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def required_paths(schema: Json) -> tuple[Path, ...]:
    """The fields that a schema requires, and those that these require in turn, through local references.

    What is required only in a branch of ``anyOf`` and its like, or inside a list, is not among them.
    """
    subschemas = Subschemas(schema)
    return tuple(_required(subschemas, schema, ()))


def _required(subschemas: Subschemas, schema: Json, path: Path) -> Iterator[Path]:
    hops = 0
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and hops < DEEPEST:
        target = subschemas.target(reference) if reference.startswith("#") else None
        schema, hops = (None if target is None else subschemas.by_path.get(target)), hops + 1
    if not isinstance(schema, Mapping) or len(path) >= DEEPEST:
        return
    names, properties = schema.get("required"), schema.get("properties")
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str):
            yield (*path, name)
            inner = properties.get(name) if isinstance(properties, Mapping) else None
            yield from _required(subschemas, inner, (*path, name))
