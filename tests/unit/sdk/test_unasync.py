"""The synchronous client is the asynchronous one without ``await``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_client_is_generated_from_aclient() -> None:
    words = [sys.executable, "scripts/unasync.py", "--check"]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == 0, "run scripts/unasync.py"
