"""The table of what each grammar backend makes of a form of a keyword, read from ``tables.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from typing import TypeAlias


class Backend(StrEnum):
    """The grammar backends in the table. The first two are vLLM's."""

    XGRAMMAR = "xgrammar"
    GUIDANCE = "guidance"
    LLAMACPP = "llamacpp"


class Verdict(StrEnum):
    """``tables.toml`` says what each means."""

    ENFORCED = "enforced"
    IGNORED = "ignored"
    REFUSED = "refused"
    NARROWED = "narrowed"


Version: TypeAlias = tuple[int, ...]
Verdicts: TypeAlias = Mapping[Version, Verdict]
"""The verdicts of one backend on one form, by the first version of each."""


def version_of(text: str) -> Version:
    return tuple(int(number) for number in text.split("."))


def _verdicts(cell: str, oldest: Version) -> Verdicts:
    """``refused; since 0.30 enforced``."""
    first, *later = cell.split("; since ")
    changes = (change.split(" ") for change in later)
    return {oldest: Verdict(first)} | {version_of(since): Verdict(verdict) for since, verdict in changes}


_DATA = tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))
OLDEST = {backend: version_of(_DATA["versions"][backend]["oldest"]) for backend in Backend}
NEWEST = {backend: version_of(_DATA["versions"][backend]["newest"]) for backend in Backend}
FORMS: Mapping[str, Mapping[Backend, Verdicts]] = {
    form: {backend: _verdicts(cell, OLDEST[backend]) for backend, cell in zip(Backend, cells, strict=True)}
    for form, cells in _DATA["forms"].items()
}


def verdicts_on(form: str) -> Mapping[Backend, Verdicts]:
    """A format without a row of its own has the row ``format``."""
    return FORMS["format" if form.startswith("format ") and form not in FORMS else form]


def wants_a_type(form: str) -> bool:
    """Whether the form would be enforced if its ``type`` were beside it."""
    return form.endswith("without a type") and not form.startswith(("uniqueItems", "contains"))


def remedy_for(form: str) -> str:
    """What to write instead: by the form, or else by its keyword."""
    if wants_a_type(form):
        return "add the `type` beside it"
    if form.endswith("with a fraction"):
        return "write a whole number"
    if form.endswith("beyond 64 bits"):
        return "write a smaller bound"
    remedies: Mapping[str, str] = _DATA["remedies"]
    return remedies.get(form) or remedies.get(form.split(" ")[0].rstrip(":,")) or "check it by a rule"
