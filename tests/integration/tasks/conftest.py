"""A real Valkey for all of these tests, and a plant of servers around it for each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

from stepladder.embedded import valkey
from stepladder.testing import ScriptedEngine
from support.plant import Plant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any


@pytest.fixture(scope="session")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with valkey.running(tmp_path_factory.mktemp("broker")) as url:
        yield url


Open = Callable[..., AbstractContextManager[Plant]]


@pytest.fixture
def plant(database_url: str, broker_url: str, tmp_path: Path) -> Open:
    """Opens a plant whose engine answers every turn as the keyword arguments of ``ScriptedEngine`` say."""

    @contextmanager
    def open_plant(**script: Any) -> Iterator[Plant]:
        with ScriptedEngine(**script) as engine:
            plant = Plant(database_url, broker_url, engine, tmp_path)
            plant.broker.flushall()
            try:
                yield plant
            finally:
                plant.connection.close()
                for process in plant.processes:
                    process.popen.kill()
                    process.popen.wait()

    return open_plant
