"""Timestamps and durations, to the microsecond, always in UTC unless an expression names a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from stepladder.validation.cel.run import Function, Run, unfit
from stepladder.validation.jsonmath import EvaluationError, kind, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A zone that does not exist is looked for in every folder of the zone data, some 50 us.
_ZONE_STEPS = 100

_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_DURATION = re.compile(r"([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}


def timestamp(_: Run, value: Any) -> datetime:
    """RFC 3339, or seconds since 1970. Below the microsecond nothing is kept."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and (match := _TIMESTAMP.fullmatch(value)):
        clock, fraction, zone = match.groups()
        zone = "+00:00" if zone in "Zz" else zone
        return datetime.fromisoformat(f"{clock}.{(fraction or '0')[:6].ljust(6, '0')}{zone}").astimezone(UTC)
    seconds = whole(value)
    if seconds is None:
        raise EvaluationError('timestamp takes a time such as "2026-01-31T12:00:00Z"')
    return EPOCH + timedelta(seconds=seconds)


def date(_: Run, value: Any) -> datetime:
    """Midnight UTC of a day."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise EvaluationError('date takes a day such as "2026-01-31"')
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


def duration(_: Run, value: Any) -> timedelta:
    """``"1h30m"``, ``"-1.5s"``; units h, m, s, ms, us and ns."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) and len(value) <= 100 else None
    if match is None:
        raise EvaluationError('duration takes a length of time such as "1h30m"')
    parts = _DURATION_PART.findall(match[2])
    microseconds = sum(Fraction(f"0{number}") * _MICROSECONDS[unit] for number, unit in parts)
    return timedelta(microseconds=int(microseconds) * (-1 if match[1] == "-" else 1))


def _zone(run: Run, name: Any) -> tzinfo:
    if not isinstance(name, str):
        raise EvaluationError(f"a time zone is a string, not {kind(name)}")
    if match := _OFFSET.fullmatch(name):
        minutes = int(match[2]) * 60 + int(match[3])
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    if name == "UTC":
        return UTC
    run.spend(_ZONE_STEPS)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise EvaluationError(f"there is no time zone {name!r}") from None


def _part(name: str, of_time: Callable[[datetime], int], of_length: Callable[[int], int] | None) -> Function:
    """A getter; ``of_length`` takes the microseconds of a duration."""

    def get(run: Run, value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, timedelta) and of_length is not None:
            return of_length(value // timedelta(microseconds=1))
        if not isinstance(value, datetime):
            raise unfit(name, "a timestamp" if of_length is None else "a timestamp or a duration", value)
        return of_time(value.astimezone(_zone(run, zone)))

    return Function(get, 1, 2)


def _per(microseconds: int) -> Callable[[int], int]:
    return lambda count: -(-count // microseconds) if count < 0 else count // microseconds


def spelled(value: datetime | timedelta) -> str:
    """A timestamp in ISO 8601 with ``Z``; a duration in seconds with ``s``."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    microseconds = value // timedelta(microseconds=1)
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if microseconds < 0 else ''}{seconds}{fraction}s"


TIME_FUNCTIONS: Mapping[str, Function] = {
    "date": Function(date, 1, 1),
    "duration": Function(duration, 1, 1),
    "timestamp": Function(timestamp, 1, 1),
    "getDate": _part("getDate", lambda time: time.day, None),
    "getDayOfMonth": _part("getDayOfMonth", lambda time: time.day - 1, None),
    "getDayOfWeek": _part("getDayOfWeek", lambda time: time.isoweekday() % 7, None),
    "getDayOfYear": _part("getDayOfYear", lambda time: time.timetuple().tm_yday - 1, None),
    "getFullYear": _part("getFullYear", lambda time: time.year, None),
    "getHours": _part("getHours", lambda time: time.hour, _per(3_600_000_000)),
    "getMilliseconds": _part("getMilliseconds", lambda time: time.microsecond // 1000, _per(1_000)),
    "getMinutes": _part("getMinutes", lambda time: time.minute, _per(60_000_000)),
    "getMonth": _part("getMonth", lambda time: time.month - 1, None),
    "getSeconds": _part("getSeconds", lambda time: time.second, _per(1_000_000)),
}
