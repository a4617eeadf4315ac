"""Strings that fit a schema: by its format, by its pattern, or words of plain English of the length that it allows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stepladder.lint.patterns import read_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FORMATS: Mapping[str, Sequence[str]] = {
    "date": ("2026-01-31", "2024-02-29"),
    "date-time": ("2026-01-31T12:00:00Z", "2024-02-29T23:59:59.999999+02:00"),
    "time": ("12:00:00Z", "23:59:59.999999+02:00"),
    "duration": ("P1D", "P1Y2M3DT4H5M6S"),
    "email": ("ann@example.org", "ann.lee+orders@mail.example.org"),
    "idn-email": ("ann@example.org", "ann.lee+orders@mail.example.org"),
    "hostname": ("example.org", "gpu-1.mail.example.org"),
    "idn-hostname": ("example.org", "gpu-1.mail.example.org"),
    "ipv4": ("10.0.0.1", "255.255.255.255"),
    "ipv6": ("::1", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    "uuid": ("01234567-89ab-4def-8123-456789abcdef",),
    "json-pointer": ("", "/records/0/item"),
    "relative-json-pointer": ("0", "1/records/0"),
    "regex": ("a", "^[A-Z]+[0-9]{4}$"),
    **dict.fromkeys(("uri", "iri"), ("https://example.org/a", "https://example.org/orders/4711?item=chair&count=12")),
    **dict.fromkeys(("uri-reference", "iri-reference", "uri-template"), ("/a", "/orders/4711?item=chair&count=12")),
}
_LONG = 200  # characters of a long text where nothing says how long it may be
_OF_A_LENGTH = frozenset({"date", "date-time", "time", "duration", "ipv4", "ipv6", "uuid"})

# Four characters a token, as prose has it; names, numbers and signs among the words, as in what models fill in.
_PROSE = (
    "The team asked for 12 chairs and 3 desks on Monday; the invoice of Harrow & Sons (no. 4711) came late, "
    "and 1,284.50 euros were refunded to customer A-2093. Nobody objected: the warehouse in Leeds had two left. "
)
_STARTS = [0, *(found.end() for found in re.finditer(" (?=.)", _PROSE))]


def bounded(schema: Mapping[str, Any]) -> bool:
    """Whether every string that fits has some greatest length, as far as this can be read off."""
    if "maxLength" in schema or schema.get("format") in _OF_A_LENGTH:
        return True
    source = str(schema.get("pattern", ""))
    pattern = read_pattern(source)
    # A pattern binds the length only where it is anchored; `a$|^b` is, and both its ways are not.
    anchored = source.startswith("^") and source.endswith("$") and not source.endswith("\\$") and "|" not in source
    return anchored and pattern is not None and pattern.longest is not None


def texts(schema: Mapping[str, Any], room: int, variant: int) -> list[str]:
    """Strings of a middle, the least and the greatest length, of at most ``room`` characters; some may not fit."""
    least = int(schema.get("minLength", 0))
    most = min(int(schema.get("maxLength", least + _LONG)), room)
    if most < least:
        return []
    middle = (least + most) // 2 if "maxLength" in schema else min(least + 24, most)
    if schema.get("format") in _FORMATS:
        return [text for text in _FORMATS[schema["format"]] if least <= len(text) <= most]
    if "pattern" in schema:
        return _patterned(str(schema["pattern"]), (middle, least, most), variant)
    return [_prose(length, variant) for length in dict.fromkeys((middle, least, most))]


def _patterned(source: str, lengths: tuple[int, int, int], variant: int) -> list[str]:
    pattern = read_pattern(source)
    most = lengths[2]
    if pattern is None or pattern.shortest > most:
        return []
    written = (pattern.text(length, variant + turn) for length in lengths for turn in (0, 1))
    return list(dict.fromkeys(written))


def _prose(length: int, variant: int) -> str:
    start = _STARTS[variant % len(_STARTS)]
    return (_PROSE[start:] + _PROSE * (length // len(_PROSE) + 1))[:length]
