"""What a job visits: each kind with what it keeps, as columns of the table ``visits`` and as the JSON of its ``body``.

A new kind is a class here, a module with its transitions, and rows in the table above ``advance``. The store, the names
of expressions, loop detection and replays treat all kinds alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self
from uuid import UUID

from stepladder.schemas.tool import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepladder.schemas.jsontypes import Json, JsonObject


class VisitStatus(StrEnum):
    """What a visit is doing. The values are stored."""

    RUNNING = "running"
    """A request, a tool or a child job is under way."""
    BACKING_OFF = "backing_off"
    """The last answer or run failed, and the next one is due later."""
    WAITING = "waiting"
    """A signal is awaited."""
    RESOLVING = "resolving"
    """The workflow to call is being looked up."""
    SETTLEMENT = "settlement"
    """An effect may have taken place, and a person has to say."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call gave no result: a word to route on, and a text for people."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to a state. ``visit`` counts a job's visits from 1, and ``carried`` says that a replay took it over."""

    kind: ClassVar[str]
    root: ClassVar[str] = ""
    """The name under which expressions read ``value`` by state."""
    read: ClassVar[Mapping[str, Callable[[Any], object]]] = {}
    """Converts a field from its JSON in ``body``, if it is not JSON itself."""
    visit: int
    state: str
    opened_at: datetime
    status: VisitStatus = field(default=VisitStatus.RUNNING, kw_only=True)
    closed_at: datetime | None = field(default=None, kw_only=True)
    carried: bool = field(default=False, kw_only=True)

    def close(self, now: datetime, **changes: Any) -> Self:
        """The visit as it ended."""
        return replace(self, status=VisitStatus.CLOSED, closed_at=now, **changes)

    @property
    def key(self) -> str | None:
        """The idempotency key of what it does in the world, if anything."""
        return None

    @property
    def once(self) -> bool:
        """Whether of all visits of this ``key`` one alone may begin."""
        return False

    @property
    def error(self) -> ToolError | None:
        return None

    @property
    def value(self) -> Json:
        """What it brought in, for expressions and for loop detection."""
        return None

    @property
    def has_value(self) -> bool:
        """Whether expressions may read ``value``."""
        return bool(self.root) and self.succeeded

    @property
    def succeeded(self) -> bool:
        """Whether it ended without an error, so that a resumed job need not repeat it."""
        return self.closed_at is not None and self.error is None

    def error_json(self) -> JsonObject | None:
        """What expressions read as the error of its state."""
        return None if self.error is None else {"kind": self.error.kind, "message": self.error.message}

    def body(self) -> JsonObject:
        """The fields of this kind that are not columns of every visit."""
        found = {one.name: _as_json(getattr(self, one.name)) for one in fields(self) if one.name not in _COLUMNS}
        return found if self.error is None else found | {"error_message": self.error.message}


@dataclass(frozen=True, slots=True)
class ToolCall(Visit):
    """One visit to a state that runs a tool. The row exists, with its key, before the tool runs.

    ``runs`` counts how often it was begun, ``failed`` how often it returned an error, and ``lost`` how often its worker
    was lost meanwhile. ``error`` is what became of the last run.
    """

    kind: ClassVar[str] = "tool"
    root: ClassVar[str] = "tools"
    read: ClassVar[Mapping[str, Callable[[Any], object]]] = {"effect": Effect}
    tool: str
    effect: Effect
    arguments: JsonObject
    key: str
    runs: int = 1
    failed: int = 0
    lost: int = 0
    result: Json = None
    error: ToolError | None = None

    @property
    def value(self) -> Json:
        return self.result

    @property
    def once(self) -> bool:
        return self.irreversible and not self.carried

    @property
    def irreversible(self) -> bool:
        """Whether an open call may have taken effect and may not be begun again."""
        return self.effect is Effect.IRREVERSIBLE


@dataclass(frozen=True, slots=True)
class SignalWait(Visit):
    """One visit to a state that waits for a signal.

    ``frozen`` maps the state of an irreversible tool that an edge leads to, to ``{"tool", "arguments"}`` as they will
    run; a wait that has any takes no early signal, and its signal names ``wait_id``. ``until`` None waits for ever.
    ``by_other`` takes no signal of the job's own principal, and ``scopes`` are what a sender needs.
    """

    kind: ClassVar[str] = "wait"
    root: ClassVar[str] = "signals"
    read: ClassVar[Mapping[str, Callable[[Any], object]]] = {
        "wait_id": UUID,
        "until": datetime.fromisoformat,
        "scopes": tuple,
        "signal_id": UUID,
    }
    signal: str
    wait_id: UUID
    show: Json
    until: datetime | None = None
    frozen: JsonObject = field(default_factory=dict)
    by_other: bool = False
    scopes: tuple[str, ...] = ()
    payload: Json = None
    signal_id: UUID | None = None
    action: str | None = None

    @property
    def value(self) -> Json:
        return self.payload

    @property
    def has_value(self) -> bool:
        return self.signal_id is not None

    @property
    def succeeded(self) -> bool:
        return self.action is not None


@dataclass(frozen=True, slots=True)
class ListRun(Visit):
    """The beginning of a list: what it is built over, read once. The turns of its state that follow are its elements.

    ``items`` is the value of ``over``, ``count`` how many elements there will be, and ``until`` the action that ends
    the list and is no element. It needs nothing from outside, and so is closed as it is opened.
    """

    kind: ClassVar[str] = "list"
    at_most: int
    items: Json = None
    count: int | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class ChildFailure:
    """Why the child of this index, from 1, gave no result: a word to route on, and a text for people."""

    index: int
    kind: str
    message: str

    def as_json(self) -> JsonObject:
        return {"index": self.index, "kind": self.kind, "message": self.message}


@dataclass(frozen=True, slots=True)
class ChildCall(Visit):
    """One visit to a state that runs other jobs and waits for them.

    ``inputs`` has one input for each child. ``version`` is None until the workflow was found; from then on all children
    are of that version. ``failed`` are the children that gave no result, as far as that is known.
    """

    kind: ClassVar[str] = "call"
    root: ClassVar[str] = "calls"
    read: ClassVar[Mapping[str, Callable[[Any], object]]] = {
        "inputs": tuple,
        "failed": lambda failed: tuple(ChildFailure(**one) for one in failed),
    }
    workflow: str
    inputs: tuple[Json, ...]
    version: int | None = None
    failed: tuple[ChildFailure, ...] = ()
    result: Json = None
    error: ToolError | None = None

    @property
    def value(self) -> Json:
        return self.result

    @property
    def has_value(self) -> bool:
        return self.error is None or self.result is not None

    def error_json(self) -> JsonObject | None:
        if self.error is None:
            return None
        children: list[Json] = [child.as_json() for child in self.failed]
        return {"kind": self.error.kind, "message": self.error.message, "children": children}


KINDS: Mapping[str, type[Visit]] = {kind.kind: kind for kind in (ToolCall, SignalWait, ListRun, ChildCall)}
_COLUMNS = frozenset({field.name for field in fields(Visit)} | {"key", "error"})


def visit_of(row: Mapping[str, Any]) -> Visit:
    """A visit from its row of the table ``visits``."""
    kind = KINDS[row["kind"]]
    body = dict(row["body"])
    message = body.pop("error_message", "")
    found: dict[str, Any] = {name: row[name] for name in ("visit", "state", "opened_at", "closed_at", "carried")}
    for name, value in body.items():
        found[name] = value if value is None or name not in kind.read else kind.read[name](value)
    if row["key"] is not None:
        found["key"] = row["key"]
    if row["error_kind"] is not None:
        found["error"] = ToolError(row["error_kind"], message)
    return kind(**found, status=VisitStatus(row["status"]))


def _as_json(value: Any) -> Json:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case tuple():
            return [_as_json(one) for one in value]
        case ChildFailure():
            return value.as_json()
        case _:
            plain: Json = value
            return plain
