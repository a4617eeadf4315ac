"""``stepladder up``: started, used over HTTP, damaged, stopped and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepladder import Client
from stepladder.testing import Answer, Fault, ScriptedEngine, wait_until

from .conftest import APP, BILL, COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.testing import Line, RecordedRequest

pytestmark = pytest.mark.long

MARK = "STEPLADDER_TEST_MARK"
PATIENT_S = 60.0
TEAM = {"team": "search"}
APPROVE = {"action": "approve"}
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}


def respond(request: RecordedRequest) -> Line:
    """The first attempt of a job that asks for patience is never answered."""
    if "patience" in request.text and request.headers["x-request-id"].endswith("-1-1"):
        return Fault("hang")
    return Answer({"total": 36})


@dataclass
class System:
    """A running system: its process, URL and log."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def children(self, name: str) -> list[int]:
        """The processes that it has started itself, by a word of their command."""
        return [pid for pid, parent, command in processes() if parent == self.process.pid and name in command]

    def stop(self, signum: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(signum)
        return self.process.wait(PATIENT_S)


@dataclass
class Place:
    """A folder with data and an engine. Every process started here carries ``mark`` in its environment."""

    folder: Path
    engine: ScriptedEngine
    mark: str = field(default_factory=lambda: str(uuid.uuid4()))

    def environment(self, **variables: str) -> dict[str, str]:
        ours = {"STEPLADDER_ENGINE_URL": self.engine.url, "STEPLADDER_HOME": str(self.folder / "home"), MARK: self.mark}
        return {**OUTSIDE, **ours, **variables}

    @contextmanager
    def up(self, *words: str, **variables: str) -> Iterator[System]:
        log = self.folder / "up.log"
        with (
            log.open("ab") as errors,
            subprocess.Popen(
                [str(COMMAND), "up", "--port", "0", "--app", "app.py", "--json", *words],
                cwd=self.folder,
                env=self.environment(**variables),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert line, log.read_text()
                yield System(process, json.loads(line)["url"], log)
            finally:
                process.kill()

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Another command, in another terminal and another folder."""
        command = [str(COMMAND), *words]
        return subprocess.run(
            command, cwd="/", env=self.environment(**variables), capture_output=True, text=True, timeout=PATIENT_S
        )

    def left(self) -> list[str]:
        """What still runs of all that was started here."""
        return [command for pid, _, command in processes() if self.mark in environment_of(pid)]

    def wait_until_gone(self) -> None:
        wait_until(lambda: not self.left(), PATIENT_S, what="everything is gone")


def processes() -> list[tuple[int, int, str]]:
    """Id, parent and command of all that run; zombies do not count."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if state != "Z":
                found.append((int(folder.name), int(parent), command))
    return found


def environment_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "bill.yaml").write_text(BILL)
    with ScriptedEngine(respond=respond) as engine:
        place = Place(tmp_path, engine)
        yield place
        for pid, _, _ in processes():
            if place.mark in environment_of(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_waiting_job_continues_with_the_next_up(place: Place) -> None:
    """Everything embedded. Ctrl-C leaves nothing running, and the data where they were."""
    with place.up() as system, Client(system.url) as client:
        client.publish(place.folder / "bill.yaml")
        job = client.submit("bill", TEAM)
        wait_until(lambda: client.get(job.id).waiting_for == "approval", PATIENT_S)
        named = place.run("db-url")
        assert named.returncode == 0
        assert named.stdout.startswith("postgresql://")
        # In another folder the note that `up` wrote names the module with the tools.
        submitted = place.run("submit", "bill", "--input", json.dumps(TEAM))
        assert submitted.returncode == 0, submitted.stderr
        other = submitted.stdout.strip()
        wait_until(lambda: client.get(other).waiting_for == "approval", PATIENT_S)
        assert system.stop() == 0
    assert place.left() == []
    assert place.run("db-url").returncode == 3

    with place.up() as system, Client(system.url) as client:
        client.signal(job.id, "approval", APPROVE)
        assert client.wait(job.id, PATIENT_S).result == {"total": 36}
        assert client.get(other).waiting_for == "approval"
        assert system.stop(signal.SIGTERM) == 0
    assert place.left() == []


def test_a_killed_worker_is_restarted_and_its_job_continues(place: Place, database_url: str) -> None:
    with place.up(STEPLADDER_DATABASE_URL=database_url) as system, Client(system.url) as client:
        client.publish(place.folder / "bill.yaml")
        job = client.submit("bill", {"team": "patience"})
        wait_until(lambda: place.engine.in_flight == 1, PATIENT_S, what="a turn is under way")
        [worker] = system.children("main worker")
        os.kill(worker, signal.SIGKILL)
        client.signal(job.id, "approval", APPROVE)
        assert client.wait(job.id, PATIENT_S).result == {"total": 36}
        [turn] = client.turns(job.id)
        assert [attempt.cause for attempt in turn.attempts] == ["abandoned", None]
        assert system.children("main worker") != [worker]
        log = [json.loads(line) for line in system.log.read_text().splitlines()]  # each line is JSON
        [crash] = [line for line in log if line["event"].startswith("worker was killed by signal 9")]
        assert crash["pid"] == worker
        assert {line.get("process") for line in log} == {None, "worker", "api"}
        assert system.stop() == 0
    assert place.left() == []


def test_a_killed_broker_is_restarted(place: Place, database_url: str) -> None:
    with place.up(STEPLADDER_DATABASE_URL=database_url) as system, Client(system.url) as client:
        client.publish(place.folder / "bill.yaml")
        [broker] = system.children("valkey-server")
        os.kill(broker, signal.SIGKILL)
        wait_until(lambda: system.children("valkey-server") not in ([], [broker]), PATIENT_S)
        job = client.submit("bill", TEAM)  # the client tries until the API is back
        client.signal(job.id, "approval", APPROVE)
        assert client.wait(job.id, PATIENT_S).result == {"total": 36}


def test_nothing_outlives_a_killed_system(place: Place, database_url: str) -> None:
    for _ in range(2):
        with place.up(STEPLADDER_DATABASE_URL=database_url) as system:
            assert len(system.children("")) == 3
            system.stop(signal.SIGKILL)
            place.wait_until_gone()


def test_a_second_system_is_refused_and_told_of_the_first(place: Place, database_url: str) -> None:
    with place.up(STEPLADDER_DATABASE_URL=database_url) as system:
        same_data = place.run("up", "--port", "0")
        assert (same_data.returncode, same_data.stdout) == (2, "")
        assert system.url in same_data.stderr
        assert str(system.process.pid) in same_data.stderr
        port = system.url.rpartition(":")[2]
        same_port = place.run("up", "--port", port, "--data", str(place.folder / "other"))
        assert (same_port.returncode, same_port.stdout) == (2, "")
        assert f"port {port}: address already in use" in same_port.stderr
        assert system.process.poll() is None
        assert system.stop() == 0
    assert place.left() == []


def test_a_child_that_cannot_start_ends_the_system_with_its_output(place: Place, database_url: str) -> None:
    (place.folder / "broken.py").write_text("raise RuntimeError('the tools are broken')")
    words = ("up", "--port", "0", "--app", str(place.folder / "broken.py"))
    done = place.run(*words, STEPLADDER_DATABASE_URL=database_url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not restarted" in done.stderr
    assert "the tools are broken" in done.stderr.partition("Its last output:")[2]
    assert place.left() == []
