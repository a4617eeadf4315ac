"""The project's specimens: answers of every kind with the verdicts they must get; and each as it would be streamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1] / "unit" / "validation" / "specimens.jsonl"
LINES = PATH.read_bytes().splitlines()
SPECIMENS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def streamed(response: dict[str, Any]) -> bytes | None:
    """The same chat completion as a server would stream it, in pieces of five characters; None for anything else."""
    body = response.get("body")
    if response.get("status") != 200 or not isinstance(body, dict) or "choices" not in body:
        return None
    choice = body["choices"][0]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for name, value in choice["message"].items():
        if isinstance(value, str) and name != "role":
            deltas += [{name: value[start : start + 5]} for start in range(0, len(value), 5)]
        elif name != "role":
            deltas.append({name: value})
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append({"choices": [], "usage": body["usage"]})
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return f"{lines}data: [DONE]\n\n".encode()
