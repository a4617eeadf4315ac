"""The ledger of tools' effects, independent of the database under test."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a tool: step ``step`` of job ``n``, under an idempotency key."""

    kind: str
    n: int
    step: str
    key: str


def effects(path: Path) -> dict[tuple[int, str], list[Effect]]:
    """All effects by job and step, in order."""
    found: dict[tuple[int, str], list[Effect]] = defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        words = json.loads(line)
        effect = Effect(words["kind"], words["n"], words["step"], words["key"])
        found[effect.n, effect.step].append(effect)
    return dict(found)
