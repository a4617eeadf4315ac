"""Workers as people run them: processes of their own, over a real PostgreSQL, a real Valkey and a scripted engine."""

from __future__ import annotations

import pickle
import signal
import subprocess
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from stepladder.embedded import valkey
from stepladder.models.database import POOL_SIZE
from stepladder.models.ids import uuid7
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.tool import Kit
from stepladder.tasks.app import QUEUE, RUN_JOB, make_app
from stepladder.tasks.process import WorkerConfig, WorkerProcess
from stepladder.testing import Answer, Fault, wait_until
from stepladder.wiring.settings import Settings
from support.deployment import PATIENT_S, always, chain, turn_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from stepladder.testing import Line, RecordedRequest
    from support.deployment import Deployment, Process

    Open = Callable[..., AbstractContextManager[Deployment]]

pytestmark = pytest.mark.long

SEVEN = {"n": 7}
CONNECTIONS = """
SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'stepladder'
"""


def hangs_at_first(request: RecordedRequest) -> Line:
    """The first attempt of the first turn is never answered."""
    return Fault("hang") if request.headers["x-request-id"].endswith("-1-1") else Answer(SEVEN)


def held_by(deployment: Deployment, process: Process) -> int:
    owners = [row["lease_owner"] or "" for row in deployment.rows("SELECT lease_owner FROM jobs")]
    return sum(owner.endswith(f":{process.popen.pid}") for owner in owners)


async def test_two_hundred_jobs_run_side_by_side_over_one_small_pool(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.5))) as d:
        d.start_worker().wait_until_ready()
        jobs = await d.submit(chain(5), 200)
        most = 0

        def all_done() -> bool:
            nonlocal most
            most = max(most, d.rows(CONNECTIONS)[0]["n"])
            return d.statuses() == {"succeeded"}

        wait_until(all_done, PATIENT_S, what="every job has succeeded")
        asked = Counter(turn_of(request) for request in d.engine.requests)
        assert asked == Counter(f"stepladder-{job}-{turn}" for job in jobs for turn in range(1, 6))
        assert d.engine.peak_in_flight >= 50
        assert 0 < most <= POOL_SIZE


async def test_another_worker_runs_the_job_of_a_killed_one(deployment: Open) -> None:
    with deployment(respond=hangs_at_first) as d:
        killed = d.start_worker()
        killed.wait_until_ready()
        await d.submit(chain(2), 4)
        wait_until(lambda: d.engine.in_flight == 4, PATIENT_S, what="four turns are under way")
        d.start_worker().wait_until_ready()
        assert held_by(d, killed) == 4
        killed.popen.kill()
        d.wait_until_all_succeeded()
        lost = d.rows("SELECT DISTINCT cause FROM attempt_outcomes WHERE turn = 1 AND attempt = 1")
        assert lost == [{"cause": "abandoned"}]


async def test_the_sweep_replaces_messages_of_a_flushed_broker(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.2))) as d:
        d.start_worker(concurrency=2).wait_until_ready()
        await d.submit(chain(2), 8)
        wait_until(lambda: d.engine.in_flight == 2, PATIENT_S, what="the worker is busy")
        d.broker.flushall()
        d.wait_until_all_succeeded()
        assert set(Counter(map(turn_of, d.engine.requests)).values()) == {1}


async def test_meaningless_messages_do_no_harm(deployment: Open) -> None:
    with deployment(**always(SEVEN)) as d:
        worker = d.start_worker()
        worker.wait_until_ready()
        app = make_app(d.broker_url)
        with app.producer_or_acquire() as producer:
            for arguments in ([str(uuid7())], ["no id"], [None], [{"job": 1}], [], ["one", "too many"]):
                app.send_task(RUN_JOB, args=arguments, producer=producer)
            app.send_task("stepladder.no_such_task", producer=producer)
            producer.publish({"no": "task"}, exchange="", routing_key=QUEUE)
            producer.publish(
                pickle.dumps(SEVEN),
                serializer=None,
                content_type="application/x-python-serialize",
                content_encoding="binary",
                exchange="",
                routing_key=QUEUE,
            )
        wait_until(lambda: d.broker.llen(QUEUE) == 0, PATIENT_S, what="everything is taken")
        await d.submit(chain(1))
        d.wait_until_all_succeeded()
        assert worker.popen.poll() is None
        assert worker.end() == 0


async def test_a_malformed_message_ends_a_worker_cleanly(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.5))) as d:
        worker = d.start_worker()
        worker.wait_until_ready()
        await d.submit(chain(2), 3)
        wait_until(lambda: d.engine.in_flight == 3, PATIENT_S, what="three turns are under way")
        d.broker.lpush(QUEUE, b"\xff no JSON")
        assert worker.popen.wait(PATIENT_S) == 1
        d.start_worker().wait_until_ready()
        d.wait_until_all_succeeded()
        assert len(d.engine.requests) == 6


async def test_a_worker_waits_for_its_broker_and_reconnects(deployment: Open, tmp_path: Path) -> None:
    with deployment(**always(SEVEN)) as d:
        path = tmp_path / "later.sock"
        d.broker_url = f"redis+socket://{path}"
        worker = d.start_worker()
        wait_until(lambda: worker.has_said("consumer: Cannot connect"), PATIENT_S, what="the worker misses its broker")
        with broker_at(path):
            worker.wait_until_ready()
            await d.submit(chain(1))
            d.wait_until_all_succeeded()
        await d.submit(chain(1), notify=False)
        with broker_at(path):
            d.wait_until_all_succeeded()
        assert worker.end() == 0


@contextmanager
def broker_at(path: Path) -> Iterator[None]:
    settings = ["--port", "0", "--save", "", "--unixsocket", str(path)]
    with subprocess.Popen([valkey.program(), *settings], stdout=subprocess.DEVNULL) as server:
        try:
            yield
        finally:
            server.kill()
            path.unlink(missing_ok=True)


async def test_sigterm_finishes_the_current_turn(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.5))) as d:
        worker = d.start_worker()
        worker.wait_until_ready()
        await d.submit(chain(3), 5)
        wait_until(lambda: d.engine.in_flight == 5, PATIENT_S, what="five turns are under way")
        assert worker.end() == 0
        assert d.engine.aborted == []
        assert d.rows("SELECT DISTINCT lease_owner, wake_at <= now() AS due FROM jobs") == [
            {"lease_owner": None, "due": True}
        ]
        assert d.rows("SELECT count(*) AS n FROM attempts WHERE arrived_at IS NULL") == [{"n": 0}]
        d.start_worker().wait_until_ready()
        d.wait_until_all_succeeded()
        assert len(d.engine.requests) == 15


async def test_a_turn_longer_than_the_drain_is_asked_again(deployment: Open) -> None:
    with deployment(respond=hangs_at_first) as d:
        worker = d.start_worker(drain_s=0.3)
        worker.wait_until_ready()
        await d.submit(chain(1))
        wait_until(lambda: d.engine.in_flight == 1, PATIENT_S, what="a turn is under way")
        assert worker.end(signal.SIGINT) == 0
        assert d.rows("SELECT lease_owner, status FROM jobs") == [{"lease_owner": None, "status": "running"}]
        d.start_worker().wait_until_ready()
        d.wait_until_all_succeeded()


async def test_a_second_signal_ends_a_worker_at_once(deployment: Open) -> None:
    with deployment(respond=hangs_at_first) as d:
        worker = d.start_worker(drain_s=1_000.0)
        worker.wait_until_ready()
        await d.submit(chain(1))
        wait_until(lambda: d.engine.in_flight == 1, PATIENT_S, what="a turn is under way")
        worker.popen.send_signal(signal.SIGTERM)
        wait_until(lambda: worker.has_said("draining"), PATIENT_S, what="the worker ends")
        assert worker.end() == 128 + signal.SIGTERM


async def test_a_password_is_not_logged(deployment: Open) -> None:
    with deployment(**always(SEVEN)) as d:
        d.broker_url = "redis://:secret-word@127.0.0.1:1/0"
        worker = d.start_worker(engine_api_key="secret-key")
        wait_until(lambda: worker.has_said("consumer: Cannot connect"), PATIENT_S, what="the worker complains")
        assert worker.end() == 0
        assert "secret" not in worker.path.read_text()


def test_a_worker_without_an_engine_does_not_start(database_url: str, broker_url: str) -> None:
    config = WorkerConfig(database_url, broker_url, "http://127.0.0.1:1/v1", Kit({}, {}), Settings())
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"), WorkerProcess(config, make_app(broker_url)):
        pass
