"""The README's counts of the public suites are what ``scripts/suites`` says of this very tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def suites(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/suites.py", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_the_readme_has_the_table_that_the_suites_give() -> None:
    done = suites(os.environ, "--markdown")
    if done.returncode == 3 and "CI" not in os.environ:
        pytest.skip(f"the suites cannot be fetched here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout in (ROOT / "README.md").read_text()
    assert len(done.stdout.splitlines()) > 2
    assert len([line for line in done.stderr.splitlines() if line.startswith("explained: y_object_dup")]) == 2


def test_without_a_package_index_it_says_so(tmp_path: Path) -> None:
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    folders = {"PATH": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}  # and no npm either
    done = suites(nothing | folders)
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: pip could not fetch a suite" in done.stderr
    assert "check the network, or the configuration of pip" in done.stderr
    assert list((tmp_path / "stepladder" / "suites").iterdir()) == []
