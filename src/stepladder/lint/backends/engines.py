"""A grammar backend at one version of its engine, and its verdict on a form of a keyword."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.lint.backends.tables import NEWEST, OLDEST, Backend, Verdict, Version, verdicts_on

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
