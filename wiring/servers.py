"""Where the servers are: those that are set, and an embedded one for each that is not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepladder.embedded import llama, model, postgres
from stepladder.models import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.wiring.settings import Settings

Say = Callable[[str], None]


@contextmanager
def database(settings: Settings, say: Say) -> Iterator[str]:
    """The URL of a PostgreSQL. An embedded one is started under ``settings.home``, brought up to date, and stopped.

    Raises ``UnreachableError`` where it cannot be started.
    """
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    say(f"starting PostgreSQL under {settings.home}")
    with postgres.running(settings.home) as url:
        migrate.upgrade(url)
        yield url


@contextmanager
def engine(settings: Settings, say: Say) -> Iterator[str]:
    """The base URL of an engine. Without one, llama.cpp serves a small model on loopback until the block is left.

    Raises ``UnreachableError`` where it cannot be started.
    """
    if settings.engine_url is not None:
        yield settings.engine_url
        return
    path = model.ensure_model(announce=say)
    say("loading the small model")
    with llama.running(path, settings.home / "engine.log") as url:
        yield url
