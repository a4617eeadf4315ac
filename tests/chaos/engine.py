"""The scripted engine as a process that can be killed: ``python -m chaos.engine PORT LOG SEED``.

Its answers depend only on seed, job, step and attempt. It logs a line for each request received and for each answer
sent completely.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from typing import TYPE_CHECKING

from chaos.seeded import seeded_random
from stepladder.embedded.child import die_with_parent
from stepladder.testing import Answer, Fault, ScriptedEngine

if TYPE_CHECKING:
    from aiohttp import web

    from stepladder.testing import Line, RecordedRequest

QUESTION = re.compile(r"Chaos job (\d+) step (\w+)")


def respond(request: RecordedRequest, seed: int) -> Line:
    asked = QUESTION.findall(request.text)[-1]
    n, step = int(asked[0]), asked[1]
    request_id = request.headers["x-request-id"]
    first = request_id.endswith("-1")
    rng = seeded_random(seed, n, step, request_id.rpartition("-")[2])
    right = {"n": n, "step": step}
    delay_s = 1.0 if step.startswith("slow") else rng.choice([0.05, 0.2, 0.5, 0.5, 1.0, 2.5])
    if step.startswith("slow"):
        return Answer(right, delay_s=delay_s)
    match rng.choices(["right", "wrong", "cut", "busy", "broken"], [80, 8, 4, 4, 4])[0]:
        case "wrong" if first:
            return Answer({"n": n + 1, "step": step}, delay_s=delay_s)
        case "cut" if first:
            return Answer('{"n": ', finish_reason="length", completion_tokens=512, delay_s=delay_s)
        case "busy" if first:
            return Answer("busy", status=503)
        case "broken" if first:
            return Fault("close_mid_stream", right)
        case _:
            return Answer(right, delay_s=delay_s, chunk_delay_s=rng.choice([0.0, 0.02]))


class LoggingEngine(ScriptedEngine):
    """Listens on a given port, and logs requests and complete answers."""

    def __init__(self, port: int, log: int, seed: int) -> None:
        super().__init__(respond=lambda request: respond(request, seed), max_model_len=4096)
        self._port = port
        self._log = log

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        request_id = request.headers.get("X-Request-Id", "")
        self._say("asked", request_id)
        response = await super()._complete(request)
        if response.status == 200:
            self._say("answered", request_id)
        return response

    def _say(self, word: str, request_id: str) -> None:
        os.write(self._log, json.dumps({"word": word, "id": request_id}).encode() + b"\n")


def main() -> None:
    port, path, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    die_with_parent(signal.SIGKILL)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with LoggingEngine(port, log, seed):
        signal.pause()


if __name__ == "__main__":
    main()
