"""The client against the real API, and over a bad connection."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from stepladder import (
    AsyncClient,
    BadInputError,
    Client,
    ConflictError,
    DeniedError,
    NotFoundError,
    RejectedError,
    UnavailableError,
    UnreachableError,
    WaitTimeoutError,
)
from stepladder.schemas.document import Workflow
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, RungState
from stepladder.testing import wait_until

from .conftest import BILL, KEYS, PAYING, Between

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stepladder.schemas.responses import Job

    from .conftest import Serve

TEAM = {"team": "search"}
APPROVE = {"action": "approve"}
CLOSE = "Connection: close\r\nContent-Length: 0\r\n\r\n"
BUSY = f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\n{CLOSE}".encode()
TOO_MANY = f"HTTP/1.1 429 Too Many Requests\r\n{CLOSE}".encode()
GONE = f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\n{CLOSE}".encode()


@pytest.fixture
def client(api_url: str) -> Iterator[Client]:
    with Client(api_url) as client:
        client.publish(BILL)
        yield client


def unsettled(client: Client) -> Job:
    """A job whose payment may or may not have taken effect."""
    client.publish(PAYING)
    job = client.submit("paying")
    wait_until(lambda: client.get(job.id).wait is not None, 20, what="the job waits")
    wait = client.get(job.id).wait
    assert wait is not None
    client.signal(job.id, "confirmation", {"action": "go", "wait_id": wait.wait_id})
    wait_until(lambda: client.get(job.id).settlement is not None, 20, what="the job waits for settlement")
    return client.get(job.id)


def test_an_unknown_effect_is_settled(client: Client) -> None:
    job = unsettled(client)
    open_ = job.settlement
    assert open_ is not None
    assert (open_.state, open_.tool, open_.arguments, open_.said) == ("pay", "pay", {}, None)
    assert open_.reason is not None
    assert (open_.reason.kind, open_.reason.message) == ("effect_unknown", "the bank broke off")
    with pytest.raises(ConflictError, match="and not of another"):
        client.settle(job.id, done=True, result={}, key="another")
    client.settle(job.id, done=True, result={"receipt": 7}, key=open_.key)
    done = client.wait(job.id)
    assert (done.status, done.result) == (JobStatus.SUCCEEDED, {"receipt": 7})


def given_up(client: Client) -> Job:
    """A job whose rule accepts neither of the engine's answers."""
    client.publish(BILL.replace("total == 36", "total == 37").replace("name: bill", "name: strict"))
    failed = client.wait(client.submit("strict", TEAM).id, 30)
    assert (failed.status, failed.failure) == (JobStatus.FAILED, Failure.ATTEMPTS_EXHAUSTED)
    return failed


def test_a_failed_job_is_judged_again_resumed_and_forked(client: Client) -> None:
    failed = given_up(client)
    assert client.revalidate(failed.id).changed == 0
    wider = {"states.sum.rules.0.check": "output.total == 36"}
    report = client.revalidate(failed.id, wider)
    assert [(one.attempt, one.was, one.now, one.changed) for one in report.attempts] == [
        (1, Outcome.SEMANTIC, Outcome.SEMANTIC, False),
        (2, Outcome.SEMANTIC, Outcome.VALID, True),
        (3, Outcome.SEMANTIC, Outcome.VALID, True),
    ]
    assert [error.pointer for error in report.attempts[1].was_errors] == ["/total"]
    resumed = client.replay(failed.id, "resume")
    forked = client.replay(failed.id, "fork", 1, wider, idempotency_key="f1")
    assert client.replay(failed.id, "fork", 1, wider, idempotency_key="f1").id == forked.id
    assert (forked.replay_of, resumed.replay_of, resumed.variant, forked.misfits) == (failed.id, failed.id, None, ())
    assert forked.variant is not None
    assert client.get(failed.id).replays == (resumed.id, forked.id)
    with pytest.raises(BadInputError, match="no new job"):
        client.replay(failed.id, "revalidate")


def jobs_in(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM jobs").fetchall()
        return int(count)


def test_a_job_from_its_document_to_its_result(client: Client) -> None:
    job = client.submit("bill", TEAM, metadata={"order": "4711"}, priority=3, deadline_s=600, token_budget=8000)
    assert (job.workflow, job.version, job.input, job.metadata, job.priority) == ("bill", 1, TEAM, {"order": "4711"}, 3)
    assert job.token_budget == 8000
    assert job.deadline_at is not None
    kinds = []
    for event in client.events(job.id, follow=True):
        kinds.append(event.kind)
        if event.kind == "wait_started":
            waiting = client.get(job.id)
            assert (waiting.status, waiting.waiting_for) == (JobStatus.WAITING, "approval")
            assert waiting.wait is not None
            assert waiting.wait.show == {"total": 36}
            assert client.signal(job.id, "approval", APPROVE, idempotency_key="s1").status == "accepted"
            assert client.signal(job.id, "approval", APPROVE, idempotency_key="s1").status == "duplicate"
    assert kinds[-1] == "job_succeeded"
    done = client.wait(job.id)
    assert (done.status, done.result) == (JobStatus.SUCCEEDED, {"total": 36})
    assert [event.kind for event in client.events(job.id)] == kinds
    assert [event.ordinal for event in client.events(job.id, after=3)] == list(range(4, len(kinds) + 1))
    assert list(client.events(job.id, follow=True, after=len(kinds))) == []


def test_turns_are_typed_and_the_raw_answer_is_exact(client: Client) -> None:
    job = client.submit("bill", TEAM)
    wait_until(lambda: client.get(job.id).waiting_for == "approval")
    [turn] = client.turns(job.id)
    assert (turn.state, turn.outcome, turn.output) == ("sum", Outcome.VALID, {"total": 36})
    first, second = turn.attempts
    assert (first.outcome, first.cause) == (Outcome.SEMANTIC, "arithmetic")
    assert first.rungs is not None
    assert (first.rungs.schema, first.rungs.semantic) == (RungState.PASSED, RungState.FAILED)
    assert (first.errors[0].pointer, first.errors[0].source) == ("/total", "arithmetic")
    assert second.usage is not None
    assert second.engine.model == "scripted"
    assert b"35" in client.raw(first.id)


def test_jobs_are_listed_over_all_pages(client: Client) -> None:
    ids = [client.submit("bill", TEAM, metadata={"nth": nth}).id for nth in range(5)]
    assert [job.id for job in client.jobs(page=2)] == ids[::-1]
    assert [job.id for job in client.jobs(metadata={"nth": 3})] == [ids[3]]
    assert list(client.jobs(status=["failed", JobStatus.CANCELLED])) == []
    assert list(client.jobs(created_after=datetime.now(UTC) + timedelta(hours=1))) == []
    with pytest.raises(RejectedError, match="status"):
        list(client.jobs(status="lost"))


def test_a_job_is_paused_unpaused_and_cancelled(client: Client) -> None:
    job = client.submit("bill", TEAM)
    wait_until(lambda: client.get(job.id).waiting_for == "approval")
    assert client.pause(job.id).status is JobStatus.PAUSED
    assert client.unpause(job.id).status is JobStatus.WAITING
    client.cancel(job.id)
    assert client.wait(job.id, 30).status is JobStatus.CANCELLED
    with pytest.raises(ConflictError) as refused:
        client.signal(job.id, "approval", APPROVE)
    assert (refused.value.status, refused.value.type) == (409, "job-ended")


def test_a_workflow_is_published_as_text_file_or_object(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "bill.yaml"
    path.write_text(BILL)
    states = {"done": {"end": "succeeded"}}
    workflow = Workflow.model_validate({"name": "made", "version": 2, "start": "done", "states": states})
    hashes = {client.publish(document).hash for document in (BILL, path, str(path))}
    assert len(hashes) == 1
    made = client.publish(workflow)
    assert (made.name, made.version, made.retired) == ("made", 2, False)
    assert client.wait(client.submit("made", version=2).id).status is JobStatus.SUCCEEDED
    with pytest.raises(RejectedError) as refused:
        client.publish("name: bad\nversion: 1\nstart: nowhere\nstates: {done: {end: succeeded}}\n")
    assert "/start" in {mistake.pointer for mistake in refused.value.errors}


def test_a_rejection_is_typed_and_has_its_places(client: Client, database_url: str) -> None:
    with pytest.raises(RejectedError) as refused:
        client.submit("bill", {"team": 5})
    problem = refused.value
    assert isinstance(problem, BadInputError)
    assert (problem.status, problem.type, problem.title) == (422, "invalid-request", "Invalid request")
    assert [mistake.pointer for mistake in problem.errors] == ["/input/team"]
    assert "/input/team" in str(problem)
    assert problem.remedy
    assert jobs_in(database_url) == 0
    client.submit("bill", TEAM, idempotency_key="k1")
    with pytest.raises(RejectedError) as reused:
        client.submit("bill", {"team": "maps"}, idempotency_key="k1")
    assert reused.value.type == "idempotency-key-reused"
    for missing in ("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "nobody", "../workflows", "a/b"):
        with pytest.raises(NotFoundError):
            client.get(missing)
    job = client.submit("bill", TEAM)
    with pytest.raises(WaitTimeoutError) as late:
        client.wait(job.id, 0)
    assert isinstance(late.value, TimeoutError)


def test_keys_are_sent_and_never_shown(serve_api: Serve) -> None:
    with serve_api(KEYS) as url, Client(url, "long-random-word") as client, Client(url, "k2") as eye:
        client.publish(BILL)
        assert client.submit("bill", TEAM).principal == "ci"
        assert "long-random-word" not in repr(client)
        assert len(list(eye.jobs())) == 1
        with pytest.raises(DeniedError, match="jobs:write"):
            eye.submit("bill", TEAM)
        with Client(url, "wrong-word") as stranger, pytest.raises(DeniedError) as refused:
            stranger.get("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")
        assert refused.value.status == 401
        assert "wrong-word" not in str(refused.value)


@pytest.mark.usefixtures("client")
def test_a_lost_answer_is_requested_again_and_makes_one_job(api_url: str, database_url: str) -> None:
    with Between(api_url, ["lose", BUSY, "lose", TOO_MANY]) as between, Client(between.url) as far:
        assert far.submit("bill", TEAM).input == TEAM
    assert len(between.seen) == 5
    keys = {
        line for request in between.seen for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency")
    }
    assert len(keys) == 1
    assert jobs_in(database_url) == 1


def test_a_broken_stream_resumes_where_it_stopped(client: Client, api_url: str) -> None:
    job = client.submit("bill", TEAM)
    client.signal(job.id, "approval", APPROVE)
    client.wait(job.id, 30)
    whole = [event.ordinal for event in client.events(job.id)]
    with Between(api_url, ["cut", BUSY, "cut", "lose"]) as between, Client(between.url) as far:
        assert [event.ordinal for event in far.events(job.id, follow=True)] == whole


@pytest.mark.usefixtures("client")
def test_retries_end_with_retry_for_s(api_url: str, database_url: str) -> None:
    with Between(api_url, [BUSY, GONE]) as between:
        with Client(between.url, retry_for_s=0) as hasty, pytest.raises(UnavailableError) as refused:
            hasty.submit("bill", TEAM)
        assert refused.value.status == 503
        assert isinstance(refused.value, UnreachableError)
        with Client(between.url) as patient, pytest.raises(UnavailableError):
            patient.submit("bill", TEAM)  # an hour is more than it waits
        assert len(between.seen) == 2
    assert jobs_in(database_url) == 0
    with Client("http://127.0.0.1:1", retry_for_s=0) as nowhere, pytest.raises(UnreachableError) as no:
        nowhere.get("x")
    assert "127.0.0.1:1" in str(no.value)
    assert "stepladder" in no.value.remedy


async def test_the_async_client_does_the_same(client: Client, api_url: str) -> None:
    async with AsyncClient(api_url) as far:
        assert (await far.publish(BILL)).name == "bill"
        job = await far.submit("bill", TEAM)
        async for event in far.events(job.id, follow=True):
            if event.kind == "wait_started":
                await far.signal(job.id, "approval", APPROVE)
        done = await far.wait(job.id, 30)
        assert done.result == {"total": 36}
        assert [one.id async for one in far.jobs(page=1)] == [job.id]
        assert await far.turns(job.id) == client.turns(job.id)
        assert len([event async for event in far.events(job.id)]) == done.event_count
        with pytest.raises(ConflictError):
            await far.cancel(job.id)
        assert repr(far) == f"AsyncClient('{api_url}')"


def test_importing_the_package_loads_no_client() -> None:
    words = "import sys, stepladder; print('httpx' in sys.modules, stepladder.Client.__name__, 'httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "Client", "True"]
