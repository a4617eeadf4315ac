"""A real Valkey for all of these tests, and a deployment around it for each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

from stepladder.embedded import valkey
from stepladder.testing import ScriptedEngine
from support.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any


@pytest.fixture(scope="session")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with valkey.running(tmp_path_factory.mktemp("broker")) as url:
        yield url


Open = Callable[..., AbstractContextManager[Deployment]]


@pytest.fixture
def deployment(database_url: str, broker_url: str, tmp_path: Path) -> Open:
    """Opens a deployment whose engine answers every turn as the keyword arguments of ``ScriptedEngine`` say."""

    @contextmanager
    def open_deployment(**script: Any) -> Iterator[Deployment]:
        with ScriptedEngine(**script) as engine:
            deployment = Deployment(database_url, broker_url, engine, tmp_path)
            deployment.broker.flushall()
            try:
                yield deployment
            finally:
                deployment.connection.close()
                for process in deployment.processes:
                    process.popen.kill()
                    process.popen.wait()

    return open_deployment
