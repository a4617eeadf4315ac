"""A llama.cpp engine as a child process: an OpenAI-compatible server with schema-constrained decoding, on loopback."""

from __future__ import annotations

import importlib.util
import os
import select
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepladder.embedded.child import open_log, python_module, tail
from stepladder.embedded.home import private_folder
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALIAS = "smollm2-135m-instruct"
SLOTS = 4  # answers at a time; llama.cpp lets further requests wait
CONTEXT = 8192  # tokens of all slots together, what SmolLM2 was trained with: 2,048 a slot
START_TIMEOUT_S = 120  # 1 second on an idle laptop, much more on a busy one
_STOP_TIMEOUT_S = 10


@contextmanager
def running(
    model: Path, log: Path, *, port: int | None = None, alias: str = ALIAS, slots: int = SLOTS, context: int = CONTEXT
) -> Iterator[str]:
    """Yield the base URL ``http://127.0.0.1:PORT/v1`` of an engine of our own that serves the GGUF file `model`.

    `port` None takes a free one. The engine ends with this block, and with this process, however it ends.
    Its output goes to `log`. Nothing but the machine itself can reach it, and no key is asked for.

    Raises `UnreachableError` when it cannot be started, and says what the log says.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise UnreachableError(
            "The embedded engine is not installed (no module xllamacpp).",
            remedy="Run pip install 'stepladder[embedded]', or set STEPLADDER_ENGINE_URL to an engine of your own.",
        )
    if port is not None:
        _ensure_free(port)
    private_folder(log.parent)
    arguments = {"model": model, "alias": alias, "port": port or 0, "slots": slots, "context": context}
    command = [f"--{name}={value}" for name, value in (arguments | {"threads": _threads()}).items()]
    with (
        open_log(log) as output,
        subprocess.Popen(  # noqa: S603 - our own interpreter and module
            python_module("stepladder.embedded.llama_server", *command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # Ctrl-C in the terminal is for us to handle
        ) as engine,
    ):
        try:
            yield f"{_address(engine, log)}/v1"
        finally:
            _stop(engine)


def _threads() -> int:
    """One core stays free. llama.cpp's threads wait for each other spinning: with 2 of them on 2 cores that others use
    too, 60 tokens took 34 seconds, with 1 they took 0.6. Beyond 8 a model this small gains nothing.
    """
    return max(1, min(8, len(os.sched_getaffinity(0)) - 1))


def _ensure_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the engine does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UnreachableError(
                f"The engine cannot listen on 127.0.0.1:{port}: {error.strerror}.",
                remedy=f"End what uses port {port} (see `ss -ltnp`), or choose another one, or none for a free one.",
            ) from error


def _address(engine: subprocess.Popen[bytes], log: Path) -> str:
    """What the engine itself says: a port that answers might be somebody else's."""
    assert engine.stdout is not None  # noqa: S101 - for the type checker, it is a pipe
    ready, _, _ = select.select([engine.stdout], [], [], START_TIMEOUT_S)
    line = engine.stdout.readline().decode().strip() if ready else ""
    if line:
        return line
    state = "ended before it was ready" if ready else f"was not ready after {START_TIMEOUT_S} seconds"
    raise UnreachableError(
        f"The embedded engine {state}. The end of {log}:\n{tail(log)}",
        remedy="Mend what the log complains about, or set STEPLADDER_ENGINE_URL to an engine of your own.",
    )


def _stop(engine: subprocess.Popen[bytes]) -> None:
    assert engine.stdin is not None  # noqa: S101 - for the type checker, it is a pipe
    engine.stdin.close()
    try:
        engine.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        engine.kill()
