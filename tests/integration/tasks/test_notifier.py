from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
import redis
from structlog.testing import capture_logs

from stepladder.models.ids import uuid7
from stepladder.schemas.errors import BadInputError
from stepladder.tasks.app import QUEUE, RUN_JOB, make_app
from stepladder.tasks.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def broker(broker_url: str) -> redis.Redis:
    broker = redis.Redis(unix_socket_path=broker_url.partition("://")[2])
    broker.flushall()
    return broker


async def test_one_job_is_one_small_json_message(broker_url: str, broker: redis.Redis) -> None:
    job = uuid7()
    async with Notifier(make_app(broker_url)) as notifier:
        assert await notifier.notify([job])
        assert await notifier.queue_length() == 1
    (message,) = broker.lrange(QUEUE, 0, -1)
    envelope = json.loads(message)
    assert envelope["content-type"] == "application/json"
    assert envelope["headers"]["task"] == RUN_JOB
    assert json.loads(b64decode(envelope["body"]))[0] == [str(job)]
    assert len(message) < 2_000


async def test_messages_arrive_in_the_order_sent(broker_url: str, broker: redis.Redis) -> None:
    jobs = [uuid7() for _ in range(4)]
    app = make_app(broker_url)
    async with Notifier(app) as notifier:
        assert await notifier.notify(jobs)
        assert await notifier.queue_length() == len(jobs)
    assert broker.llen(QUEUE) == len(jobs)
    with app.connection_for_read() as connection, connection.SimpleQueue(QUEUE) as queue:
        taken = [queue.get(timeout=5).payload[0][0] for _ in jobs]
    assert taken == [str(job) for job in jobs]


async def test_a_missing_broker_is_logged_once_and_raises_nothing(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with Notifier(make_app(f"redis+socket://{tmp_path}/none.sock")) as notifier:
            assert not await notifier.notify([uuid7()])
            assert not await notifier.notify([uuid7()] * 1_000)
            assert await notifier.queue_length() is None
    assert [line["log_level"] for line in logs] == ["warning"]


async def test_a_silent_broker_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        async with Notifier(make_app(f"redis+socket://{path}"), timeout_s=0.05) as notifier:
            for _ in range(5):  # more than it has threads
                assert not await notifier.notify([uuid7()])


async def test_celery_broker_variables_of_other_applications_are_ignored(
    broker_url: str, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL"):
        monkeypatch.setenv(name, "redis://127.0.0.1:1/0")
    app = make_app(broker_url)
    async with Notifier(app) as notifier:
        assert await notifier.notify([uuid7()])
    assert broker.llen(QUEUE) == 1
    assert str(app.connection_for_read().hostname).endswith(broker_url.partition("://")[2])


@pytest.mark.parametrize("url", ["amqp://user:secret@host", "user:secret@host", "", "http://:secret@host/"])
def test_an_unsupported_broker_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(BadInputError) as raised:
        make_app(url)
    assert "secret" not in str(raised.value) + raised.value.remedy


def test_only_json_is_accepted_and_no_results_are_stored() -> None:
    app = make_app("redis://:secret@127.0.0.1:1/0")
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    assert app.backend.as_uri() == "disabled://"
    assert "secret" not in app.connection_for_read().as_uri()
    assert "secret" not in repr(app)


TLS = """
import asyncio, ssl, sys

async def pump(reader, writer):
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()

async def serve(reader, writer):
    broker_reader, broker_writer = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(pump(reader, broker_writer), pump(broker_reader, writer))

async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None and "CI" not in os.environ:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path / "certificate.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-out", str(path), "-keyout", str(path.with_suffix(".key"))]
    subprocess.run(["openssl", "req", "-x509", *curve, *names, *files], check=True, capture_output=True)
    return path


@pytest.fixture
def tls_port(broker_url: str, certificate: Path) -> Iterator[int]:
    """A port of this machine at which the broker is reached with TLS."""
    arguments = [broker_url.partition("://")[2], str(certificate), str(certificate.with_suffix(".key"))]
    with subprocess.Popen(
        [sys.executable, "-c", TLS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as proxy:
        assert proxy.stdout is not None
        yield int(proxy.stdout.readline())
        proxy.kill()


async def test_tls_and_password_work_and_an_unknown_certificate_is_refused(
    broker: redis.Redis, certificate: Path, tls_port: int
) -> None:
    broker.acl_setuser("someone", enabled=True, passwords=["+right"], keys=["*"], categories=["+@all"])

    async def notified(password: str, query: str) -> bool:
        number = next(numbers)  # Kombu gives connections that differ in their TLS alone out of one pool
        async with Notifier(make_app(f"rediss://someone:{password}@127.0.0.1:{tls_port}/{number}{query}")) as notifier:
            return await notifier.notify([uuid7()])

    numbers = itertools.count()
    assert await notified("right", f"?ssl_ca_certs={certificate}")
    assert await notified("right", "?ssl_cert_reqs=none")
    assert not await notified("right", "")
    assert not await notified("wrong", f"?ssl_ca_certs={certificate}")
