"""A grammar backend at one version of its engine, and its word on a form of a keyword."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stepladder.lint.backends import guidance, llamacpp, xgrammar
from stepladder.lint.backends.verdicts import Verdict, at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from stepladder.lint.backends.verdicts import Said, Version


class Backend(StrEnum):
    """The grammar backends of which something is known. The first two are vLLM's."""

    XGRAMMAR = "xgrammar"
    GUIDANCE = "guidance"
    LLAMACPP = "llamacpp"


_MODULES: Mapping[Backend, ModuleType] = {
    Backend.XGRAMMAR: xgrammar,
    Backend.GUIDANCE: guidance,
    Backend.LLAMACPP: llamacpp,
}
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
        """Whether the table was made with this version or ones around it; newer ones are taken to be like the last."""
        newest = _newest(self.backend)
        return self.version == newest if self.backend is Backend.LLAMACPP else self.version[: len(newest)] <= newest

    def verdict(self, form: str) -> Verdict:
        return at(_said(_table(self.backend), form), self.version)


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """``reason`` for a person, and ``known`` versions."""

    reason: str
    known: str


def engine_of(backend: Backend, version: str | None = None) -> Engine | UnknownVersion:
    """Without a version, the newest known. One that cannot be read, or is older than all that are known, is refused."""
    if version is None:
        return Engine(backend, _newest(backend))
    if backend is Backend.LLAMACPP:
        build = _LLAMACPP.fullmatch(version)
        if build is None:
            return UnknownVersion(f"{version!r} is no build of llama.cpp", "write it as b11549, or 2026.10.11549")
        return Engine(backend, (int(build[1]),))
    found = _VLLM.fullmatch(version)
    if found is None:
        return UnknownVersion(f"{version!r} is no version of vLLM", "write it as 0.32.0")
    oldest = _MODULES[backend].OLDEST
    read = tuple(int(number) for number in found.groups(default="0"))
    if read < oldest:
        known = f"{'.'.join(map(str, oldest))} is the oldest of which anything is known"
        return UnknownVersion(f"nothing is known of {backend} in vLLM {version}", known)
    return Engine(backend, read)


def enforced_nowhere(form: str) -> bool:
    """Whether every backend, in its newest known version, refuses or ignores this form."""
    return all(
        Engine(backend, _newest(backend)).verdict(form) in (Verdict.REFUSED, Verdict.IGNORED) for backend in Backend
    )


def known_forms() -> tuple[str, ...]:
    """Every form of the tables, in their order."""
    return tuple(xgrammar.TABLE)


def verdicts(form: str) -> dict[Backend, Said]:
    """What each table says."""
    return {backend: _said(_table(backend), form) for backend in Backend}


def _newest(backend: Backend) -> Version:
    newest: Version = _MODULES[backend].NEWEST
    return newest


def _table(backend: Backend) -> Mapping[str, Said]:
    table: Mapping[str, Said] = _MODULES[backend].TABLE
    return table


def _said(table: Mapping[str, Said], form: str) -> Said:
    """A format that a table does not name is one of all the others."""
    return table[form] if form in table else table["format" if form.startswith("format ") else form]
