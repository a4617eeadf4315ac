"""What each grammar backend, at a version of its engine, makes of a form of a keyword: the table in ``tables.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
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


_VLLM = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?:[-+.]?[a-z].*)?", re.ASCII)
_LLAMACPP = re.compile(r"(?:b|\d{4}\.\d{1,2}\.)?(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Engine:
    """``version`` is vLLM's, or llama.cpp's build."""

    backend: Backend
    version: Version

    @property
    def name(self) -> str:
        if self.backend is Backend.LLAMACPP:
            return f"llama.cpp b{self.version[0]}"
        return f"{self.backend} in vLLM {'.'.join(map(str, self.version))}"

    @property
    def measured(self) -> bool:
        """Whether the table covers this version; newer ones are taken to be like the newest that it covers."""
        newest = NEWEST[self.backend]
        return self.version == newest if self.backend is Backend.LLAMACPP else self.version[: len(newest)] <= newest

    def verdict(self, form: str) -> Verdict:
        verdicts = verdicts_on(form)[self.backend]
        return verdicts[max(since for since in verdicts if since <= self.version)]


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """``reason`` for a person, and ``known`` versions."""

    reason: str
    known: str


def engine_of(backend: Backend, version: str | None = None) -> Engine | UnknownVersion:
    """Without a version, the newest known. A malformed version, or one older than the table, is refused."""
    if version is None:
        return Engine(backend, NEWEST[backend])
    if backend is Backend.LLAMACPP:
        build = _LLAMACPP.fullmatch(version)
        if build is None:
            return UnknownVersion(f"{version!r} is not a build of llama.cpp", "write it as b11549, or 2026.10.11549")
        return Engine(backend, (int(build[1]),))
    found = _VLLM.fullmatch(version)
    if found is None:
        return UnknownVersion(f"{version!r} is not a version of vLLM", "write it as 0.32.0")
    oldest = OLDEST[backend]
    read = tuple(int(number) for number in found.groups(default="0"))
    if read < oldest:
        known = f"{'.'.join(map(str, oldest))} is the oldest known version"
        return UnknownVersion(f"{backend} in vLLM {version} is not in the table", known)
    return Engine(backend, read)


def enforced_nowhere(form: str) -> bool:
    """Whether every backend, in its newest known version, refuses or ignores this form."""
    return all(
        Engine(backend, NEWEST[backend]).verdict(form) in (Verdict.REFUSED, Verdict.IGNORED) for backend in Backend
    )
