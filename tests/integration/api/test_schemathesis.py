"""Generated requests against the specification: none is answered with a server error.

schemathesis needs an older jsonschema-rs than Stepladder, so ``scripts/schemathesis`` makes an environment for it.
For a longer run set STEPLADDER_SCHEMATHESIS_EXAMPLES=300 and run this test alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import GOOD, PAYING

if TYPE_CHECKING:
    from .conftest import Api

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("STEPLADDER_SCHEMATHESIS_EXAMPLES", "10"))
OWN = Path(__file__).parents[3] / ".schemathesis" / "bin" / "schemathesis"
COMMAND = shutil.which("schemathesis") or (str(OWN) if OWN.exists() else None)
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)


@pytest.mark.skipif(
    COMMAND is None and "CI" not in os.environ, reason="scripts/schemathesis has not made its environment"
)
async def test_schemathesis_finds_no_server_error(bill: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.api.jobs.LONGEST_WAIT_S", 0.05)  # no worker runs, so no job ends
    await bill.publish(PAYING)
    await bill.client.post("/v1/jobs", json=GOOD)
    process = await asyncio.create_subprocess_exec(
        str(COMMAND),
        "run",
        f"{bill.url}/openapi.json",
        f"--checks={','.join(CHECKS)}",
        f"--max-examples={EXAMPLES}",
        "--seed=1",
        "--generation-database=none",
        "--no-color",
        "--request-timeout=70",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert "not_a_server_error" not in said.decode()
