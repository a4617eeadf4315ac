"""Writes the synchronous client from the asynchronous one. ``--check`` only says whether it is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SDK = Path(__file__).parents[1] / "src/stepladder/sdk"
SOURCE, TARGET = SDK / "aclient.py", SDK / "client.py"
HEADER = "# Generated from aclient.py by scripts/unasync.py: edit that one, and run the script.\n"
RULES = (
    (r"import asyncio\n", ""),
    (r"\bawait ", ""),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bAsync(Client|Iterator)\b", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_raw)\b", r"\1"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"for asyncio\b", "without asyncio"),
    (r"``async (with|for)``", r"``\1``"),
)


def synchronous(text: str) -> str:
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return _ruff("format", _ruff("check", HEADER + text, "--select=I,PERF,UP", "--fix", "--unsafe-fixes", "--quiet"))


def _ruff(command: str, text: str, *options: str) -> str:
    words = [sys.executable, "-m", "ruff", command, *options, f"--stdin-filename={TARGET}", "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed words
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return done.stdout


def main() -> int:
    text = synchronous(SOURCE.read_text())
    if "--check" in sys.argv[1:]:
        return int(TARGET.read_text() != text)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
