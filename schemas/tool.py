"""Tools and Python rules that a user registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import JsonObject


class Effect(StrEnum):
    """What running a tool does to the world, which decides what may happen after a crash.

    ``read`` and ``idempotent`` may run again under the same idempotency key; ``irreversible`` runs at most once.
    """

    READ = "read"
    IDEMPOTENT = "idempotent"
    IRREVERSIBLE = "irreversible"


DEFAULT_TIMEOUT_S = 300.0
"""For a tool without its own: longer than servers usually take to answer, and yet a hanging tool does not hold its job
forever."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool. ``parameters`` is the JSON Schema of its one argument object, ``returns`` that of its result.

    ``takes_key``: ``function`` also takes the keyword ``idempotency_key``. A run may take
    ``timeout_s`` seconds, and 0 means none; None is ``DEFAULT_TIMEOUT_S``.
    """

    name: str
    effect: Effect
    parameters: JsonObject
    function: Callable[..., Any]
    permissions: tuple[str, ...] = ()
    description: str = ""
    takes_key: bool = False
    returns: JsonObject = field(default_factory=dict)
    timeout_s: float | None = None


RuleFunction: TypeAlias = Callable[..., str | None]
"""``(output, *, input, turns, tools) -> str | None``: None holds, a string is the reason."""


@dataclass(frozen=True, slots=True)
class Kit:
    """The user's code that documents may name: tools and rules, by name."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    rules: Mapping[str, RuleFunction] = field(default_factory=dict)
