"""What the clients return: the models of the HTTP API, read from its JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from pydantic import Field, TypeAdapter

from stepladder.schemas import history
from stepladder.schemas.event import EventKind  # noqa: TC001 -- pydantic reads it

T = TypeVar("T")


class Event(history.Event):
    """One line of a job's history. ``kind`` is plain text if it is unknown to this client, as from a newer server."""

    kind: EventKind | str = Field(union_mode="left_to_right")  # type: ignore[assignment] # wider, as the text says


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def parsed(kind: type[T], value: Any) -> T:
    """The value in its type. Raises ``ValueError`` if it is not an answer of this API."""
    hashable: Any = kind
    found: T = _adapter(hashable).validate_python(value)
    return found
