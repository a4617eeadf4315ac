"""The README's first command, as a newcomer runs it, on the embedded servers and the real small model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def test_the_demo_runs_six_real_jobs_and_shows_a_rejected_answer(tmp_path: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}
    ran = subprocess.run(
        [sys.executable, "scripts/demo.py"],
        cwd=ROOT,
        env={**outside, "STEPLADDER_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"(\d) of 6 jobs succeeded", ran.stdout)
    assert found is not None
    assert int(found[1]) >= 5
    rejected = ran.stdout.split("An answer that a rule rejected", 1)[1]
    for word in ("rule", "note", "stepladder psql", "stepladder show"):
        assert word in rejected or word in ran.stdout
