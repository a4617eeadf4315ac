"""The tools of the chaos workflows. Each writes its effect to the ledger. Workers load this file with ``--app``."""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

import stepladder

LEDGER = "CHAOS_LEDGER"
LONGEST_S = 0.3
"""Pauses before and after the effect, so that a kill may hit either."""


def work(kind: str, n: int, step: str, key: str) -> dict[str, Any]:
    """Writes the effect as one line with one ``write``, so that it is there completely or not at all."""
    time.sleep(random.uniform(0.02, LONGEST_S))  # noqa: S311 -- no secret
    line = json.dumps({"kind": kind, "n": n, "step": step, "key": key, "pid": os.getpid(), "at": time.time()}) + "\n"
    ledger = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
        os.fsync(ledger)
    finally:
        os.close(ledger)
    time.sleep(random.uniform(0.0, LONGEST_S))  # noqa: S311 -- no secret
    return {"n": n, "step": step, "receipt": key}


@stepladder.tool("look", effect="read")
def look(n: int, step: str, idempotency_key: str) -> dict[str, Any]:
    """May run any number of times."""
    return work("read", n, step, idempotency_key)


@stepladder.tool("credit", effect="idempotent")
def credit(n: int, step: str, idempotency_key: str) -> dict[str, Any]:
    """Only the first line under a key counts as an effect."""
    return work("idempotent", n, step, idempotency_key)


@stepladder.tool("pay", effect="irreversible")
def pay(n: int, step: str, idempotency_key: str) -> dict[str, Any]:
    """Must run at most once."""
    return work("irreversible", n, step, idempotency_key)
