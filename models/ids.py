"""Ids that sort by the time at which they were made (UUID version 7, RFC 9562)."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """48 bits of milliseconds since 1970, then 74 bits of chance."""
    milliseconds = time.time_ns() // 1_000_000
    chance = secrets.randbits(74)
    version, variant = 0x7 << 76, 0b10 << 62
    return UUID(int=milliseconds << 80 | version | (chance >> 62) << 64 | variant | chance & (2**62 - 1))
