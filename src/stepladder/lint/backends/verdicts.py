"""What an engine makes of a form, and since which of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias


class Verdict(StrEnum):
    """``enforced``: every answer obeys. ``ignored``: answers may break it. ``refused``: the request fails.

    ``narrowed``: answers obey something narrower than the schema, so that some that would fit can never be given.
    """

    ENFORCED = "enforced"
    IGNORED = "ignored"
    REFUSED = "refused"
    NARROWED = "narrowed"


Version: TypeAlias = tuple[int, ...]
Said: TypeAlias = Verdict | Mapping[Version, Verdict]
"""One verdict for all known versions, or the first version of each."""


def at(said: Said, version: Version) -> Verdict:
    """The verdict that holds in ``version``, which is not older than the first one known."""
    if isinstance(said, Verdict):
        return said
    return said[max(since for since in said if since <= version)]
