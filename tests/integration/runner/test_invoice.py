"""The invoice: JSON without a fault, and a wrong total. The arithmetic rule rejects it, and the model mends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepladder.schemas.job import JobStatus
from stepladder.testing import ScriptedEngine, run

EXAMPLE = Path(__file__).parents[3] / "examples" / "invoice"
RIGHT: dict[str, Any] = {
    "reference": "R-204",
    "records": [
        {"item": "espresso beans", "qty": 4, "unit_price": 12.5},
        {"item": "paper filters", "qty": 2, "unit_price": 3},
    ],
    "total": 56,
}
WRONG = RIGHT | {"total": 65.25}
TEXT = "reference: R-204. item: espresso beans, qty: 4 at 12.50. item: paper filters, qty: 2 at 3.00."
BOOKED = {"currency": "EUR", "reference": "R-204"}
TOLD = "/total: total must be the sum of qty times unit_price, copy each number from the invoice"


async def test_an_invoice_with_a_wrong_total_is_corrected(database_url: str) -> None:
    document = (EXAMPLE / "workflow.yaml").read_text()
    with ScriptedEngine([WRONG, RIGHT, BOOKED]) as engine:
        ran = await run(document, {"text": TEXT}, engine_url=engine.url, database_url=database_url)
        first, second, _ = engine.requests

    rejected, accepted = ran.turns[0].attempts
    assert (rejected.outcome, rejected.cause, accepted.outcome) == ("semantic", "arithmetic", "valid")
    assert [(error.pointer, error.source) for error in rejected.errors] == [("/total", "arithmetic")]
    assert rejected.content_bytes == json.dumps(WRONG).encode()  # kept as it came
    assert (ran.job.status, ran.job.result) == (JobStatus.SUCCEEDED, BOOKED | {"total": 56})

    # The retry says where and why, in the last message alone; what was wrong is not shown to the model again.
    told = second.text.removeprefix(first.text)
    assert second.text.startswith(first.text)
    assert TOLD in told
    assert "65" not in told
    assert second.raw.replace(json.dumps(told, ensure_ascii=False)[1:-1].encode(), b"") == first.raw
