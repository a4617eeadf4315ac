"""As much of a text as is JSON from one bracket on: the reader behind what is salvaged, and behind nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.schemas.degraded import Loss
from stepladder.schemas.outcomes import Cause
from stepladder.schemas.pointer import pointer
from stepladder.validation.complaints import cut
from stepladder.validation.parse import MAX_DEPTH, NotJson, Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LOSSES = 100
MAX_POINTER = 500

Path: TypeAlias = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
# A number that nothing follows may have had more digits to come.
_SCALAR = re.compile(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?=[ \t\n\r,\]}])"
    r"|(?:true|false|null|NaN|-?Infinity)(?=[ \t\n\r,\]}]|\Z)"
)
# The beginning of a text, of a number or of a word, and then the end.
_UNFINISHED = re.compile(r'(?:"(?:[^"\\\x00-\x1f]++|\\.)*+\\?|[-+.0-9A-Za-z]*+)\Z')
_CLOSING = {dict: "}", list: "]"}


class Stop(StrEnum):
    """Why reading stopped before its document was closed."""

    ENDED = "ended"
    NO_JSON = "no_json"
    TOO_DEEP = "too_deep"


class Losses:
    """What is lost, in the order in which it was found; beyond ``MAX_LOSSES`` it is only counted."""

    def __init__(self) -> None:
        self._listed: list[Loss] = []
        self._more = 0

    @property
    def full(self) -> bool:
        return len(self._listed) == MAX_LOSSES

    def add(self, path: Path, reason: str) -> None:
        if self.full:
            self._more += 1
        else:
            self._listed.append(Loss(cut(pointer(path), MAX_POINTER), reason))

    def take(self, others: Losses) -> None:
        """Puts what others hold behind these."""
        room = MAX_LOSSES - len(self._listed)
        self._listed += others._listed[:room]
        self._more += others._more + len(others._listed[room:])

    @property
    def all(self) -> tuple[Loss, ...]:
        more = [Loss("", f"and {self._more} more things of these kinds")] if self._more else []
        return (*self._listed, *more)


class Origins:
    """Of each list that lost items, the places that the others had in the answer as it was written."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[list[Any], Sequence[int]]] = {}  # the list is held, so that its id stays its own

    def put(self, items: list[Any], places: Sequence[int]) -> None:
        self._places[id(items)] = (items, places)

    def of(self, items: list[Any]) -> Sequence[int]:
        held = self._places.get(id(items))
        return range(len(items)) if held is None else held[1]


@dataclass(frozen=True, slots=True)
class Fragment:
    """``value`` as far as it could be read, up to ``end``; ``stopped`` is None where the document was closed.

    ``at`` is where in the document it stopped.
    """

    value: dict[str, Any] | list[Any]
    end: int
    losses: Losses
    origins: Origins
    stopped: Stop | None = None
    at: Path = ()


@dataclass(slots=True)
class _Open:
    """A container that is being read, and the step in it of the member that is: None between two members."""

    holder: dict[str, Any] | list[Any]
    step: str | int | None = None
    members: int = 0
    origins: list[int] = field(default_factory=list)


def read_fragment(text: str, start: int) -> Fragment:
    """Reads the object or array that begins at ``start``, to its end or to where it is no JSON any more.

    A comma before a closing bracket is passed over. A member whose value JSON cannot hold (NaN, 1e999, half a
    character) is left out, and so is the earlier of two with one name. Linear in the text.
    """
    return _Reader(text, start).read()


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.open: list[_Open] = []
        self.losses = Losses()
        self.origins = Origins()

    def read(self) -> Fragment:
        self._enter()
        while True:
            self._skip_space()
            holder = self.open[-1].holder
            if self._here() == _CLOSING[type(holder)]:
                self.at += 1
                self._leave()
                if not self.open:
                    return Fragment(holder, self.at, self.losses, self.origins)
            elif (stopped := self._member()) is not None:
                return self._give_up(stopped)

    def _member(self) -> Stop | None:
        """Reads what comes next in the innermost container, its comma first."""
        top = self.open[-1]
        if top.members and not self._take(","):
            return self._why()
        if top.members and self._here() == _CLOSING[type(top.holder)]:
            self._lose("a comma before the closing bracket is left out")
            return None
        if isinstance(top.holder, list):
            top.step = top.members
        elif (stopped := self._name(top)) is not None:
            return stopped
        top.members += 1
        return self._value(top)

    def _name(self, top: _Open) -> Stop | None:
        name = self._string()
        if name is None or not self._take(":"):
            return self._why()
        top.step = name
        return None

    def _value(self, top: _Open) -> Stop | None:
        if self._here() in ("{", "["):
            if len(self.open) >= MAX_DEPTH:
                return Stop.TOO_DEEP
            self._enter()
            return None
        token = (_STRING if self._here() == '"' else _SCALAR).match(self.text, self.at)
        if token is None:
            return self._why()
        match _read(token.group()):
            case NotJson(Cause.SYNTAX):
                return Stop.NO_JSON
            case NotJson(_, reason):
                self._lose(f"left out: {reason}")
            case Parsed(value):
                self._keep(value)
        top.step = None
        self.at = token.end()
        return None

    def _string(self) -> str | None:
        token = _STRING.match(self.text, self.at)
        read = None if token is None else _read(token.group())
        if token is None or not isinstance(read, Parsed):
            return None
        self.at = token.end()
        return str(read.value)

    def _keep(self, value: Any) -> None:
        """Puts a whole value where the innermost container was waiting for it."""
        top = self.open[-1]
        if isinstance(top.holder, list):
            top.origins.append(top.members - 1)
            top.holder.append(value)
            return
        name = str(top.step)
        if name in top.holder:
            self._lose("the name stands twice in its object; the earlier value is left out")
        top.holder[name] = value

    def _enter(self) -> None:
        self.open.append(_Open({} if self._here() == "{" else []))
        self.at += 1

    def _leave(self) -> None:
        """Closes the innermost container, and puts it into the one around it."""
        closed = self.open.pop()
        if isinstance(closed.holder, list) and len(closed.holder) < closed.members:
            self.origins.put(closed.holder, closed.origins)
        if self.open:
            self._keep(closed.holder)
            self.open[-1].step = None

    def _give_up(self, stopped: Stop) -> Fragment:
        """Closes what is open. A container of which nothing was read yet is not begun."""
        at, outermost = self._path(), self.open[0].holder
        while self.open:
            if self.open[-1].holder:
                self._leave()
            else:
                self.open.pop()
                at = self._path()
        return Fragment(outermost, self.at, self.losses, self.origins, stopped, at)

    def _lose(self, reason: str) -> None:
        self.losses.add(() if self.losses.full else self._path(), reason)

    def _path(self) -> Path:
        return tuple(container.step for container in self.open if container.step is not None)

    def _why(self) -> Stop:
        return Stop.ENDED if _UNFINISHED.match(self.text, self.at) else Stop.NO_JSON

    def _here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, sign: str) -> bool:
        """Passes over a sign and the white space around it."""
        self._skip_space()
        if self._here() != sign:
            return False
        self.at += 1
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at


def _read(token: str) -> Parsed | NotJson:
    """The value of a text, a number or a word; most texts are what they look like."""
    if token[0] == '"' and "\\" not in token:
        return Parsed(token[1:-1])
    return parse(token.encode())
