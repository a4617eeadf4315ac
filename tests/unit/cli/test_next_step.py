"""How to continue a job that failed or was cancelled."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from stepladder.cli.view import next_step
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.responses import Job

JOB = UUID("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")


def ended(status: JobStatus, failure: Failure | None = None, turns: int = 3) -> Job:
    return Job(
        id=JOB, workflow="bill", version=1, status=status, state="sum", waiting_for=None, failure=failure,
        failure_detail=None, input={}, result=None, turn_count=turns, attempts=turns, tokens=0, metadata={},
        created_at=datetime(2026, 1, 31, tzinfo=UTC), started_at=None, finished_at=None, replay_of=None, parent=None,
        priority=0, principal="local", token_budget=None, deadline_at=None, event_count=0, cancel_requested=False,
        workflow_paused=False, degraded=None,
    )  # fmt: skip


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_has_a_command_that_fits_its_line(failure: Failure) -> None:
    found = next_step(ended(JobStatus.FAILED, failure))
    assert found is not None
    why, command = found
    assert command.startswith(f"stepladder replay {JOB} --mode ")
    assert max(len(why), len(command)) <= 97


@pytest.mark.parametrize("failure", [Failure.REJECTED, Failure.LOOP, Failure.TRANSITION_DENIED])
def test_a_job_that_a_resume_cannot_help_is_forked(failure: Failure) -> None:
    for turns, flag in ((3, " --from-turn 3"), (0, "")):
        found = next_step(ended(JobStatus.FAILED, failure, turns))
        assert found is not None
        assert f"--mode fork{flag}" in found[1]


def test_a_cancelled_job_can_be_resumed() -> None:
    cancelled = next_step(ended(JobStatus.CANCELLED))
    assert cancelled is not None
    assert cancelled[1].endswith("--mode resume")
    assert next_step(ended(JobStatus.SUCCEEDED)) is None
    assert next_step(ended(JobStatus.RUNNING)) is None
