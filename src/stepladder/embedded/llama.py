"""A llama.cpp engine as a child process: an OpenAI-compatible server with schema-constrained decoding, on loopback."""

from __future__ import annotations

import os
import select
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepladder.embedded.child import log_failure, open_log, python_module, wheel_folder
from stepladder.embedded.home import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALIAS = "smollm2-135m-instruct"
VARIABLE = "STEPLADDER_ENGINE_URL"
SLOTS = 4  # requests answered at once; llama.cpp queues further ones
CONTEXT = 8192  # tokens of all slots together, SmolLM2's trained context: 2,048 for each slot
START_TIMEOUT_S = 120  # 1 second on an idle laptop, much more on a busy one
_STOP_TIMEOUT_S = 10


@contextmanager
def running(model: Path, log: Path) -> Iterator[str]:
    """Yield the base URL ``http://127.0.0.1:PORT/v1`` of a new engine that serves the GGUF file ``model``.

    It takes a free port. It ends with this block, and with this process, however that ends. Its output goes to ``log``.
    It can be reached only from this machine, and needs no key.

    Raises ``UnreachableError``, with the end of the log, if it cannot be started.
    """
    wheel_folder("xllamacpp", "engine", VARIABLE)
    private_folder(log.parent)
    options = {
        "model": model, "alias": ALIAS, "port": 0, "slots": SLOTS, "context": CONTEXT, "threads": _threads()
    }  # fmt: skip
    with (
        open_log(log) as output,
        subprocess.Popen(  # noqa: S603 -- our own interpreter and module
            python_module(
                "stepladder.embedded.llama_server", *(f"--{name}={value}" for name, value in options.items())
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # we handle Ctrl-C in the terminal
        ) as engine,
    ):
        try:
            yield f"{_address(engine, log)}/v1"
        finally:
            _stop(engine)


def _threads() -> int:
    """Leave one core free. llama.cpp's threads spin while they wait for each other: on 2 busy cores, 60 tokens took 34
    seconds with 2 threads and 0.6 with 1. More than 8 gain nothing for a model this small.
    """
    return max(1, min(8, len(os.sched_getaffinity(0)) - 1))


def _address(engine: subprocess.Popen[bytes], log: Path) -> str:
    """As the engine prints it: another program might answer on a guessed port."""
    assert engine.stdout is not None  # noqa: S101 -- for the type checker, it is a pipe
    ready, _, _ = select.select([engine.stdout], [], [], START_TIMEOUT_S)
    line = engine.stdout.readline().decode().strip() if ready else ""
    if line:
        return line
    state = "ended before it was ready" if ready else f"was not ready after {START_TIMEOUT_S} seconds"
    raise log_failure(f"The embedded engine {state}", log, VARIABLE)


def _stop(engine: subprocess.Popen[bytes]) -> None:
    assert engine.stdin is not None  # noqa: S101 -- for the type checker, it is a pipe
    engine.stdin.close()
    try:
        engine.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        engine.kill()
