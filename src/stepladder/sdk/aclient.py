"""The client of the HTTP API, for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self

import httpx

from stepladder.schemas.event import FINAL
from stepladder.schemas.history import TurnVisit
from stepladder.schemas.published import PublishedWorkflow
from stepladder.schemas.replay import Revalidated
from stepladder.schemas.responses import Job, JobPage, Signalled
from stepladder.sdk import calls
from stepladder.sdk.calls import Call, Frames, job_path
from stepladder.sdk.problems import WaitTimeoutError
from stepladder.sdk.results import Event, parsed
from stepladder.sdk.trial import PATIENCE_S, RECONNECT_S, STREAM_S, TIMEOUT_S, Address, Trial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from uuid import UUID

    from stepladder.schemas.document import Workflow

EVENTS = 1000  # read at once


class AsyncClient:
    """The API at ``base_url``. Use it as ``async with``, or end it with ``aclose``.

    Every call raises ``ProblemError`` if the API rejects it, and ``UnreachableError`` if the API does not answer.
    Failed connections, and status 429, 502, 503 and 504, are retried with growing pauses, or when Retry-After says,
    for ``retry_for_s`` seconds in all; 0 means no retry. No answer may take longer than ``timeout_s`` seconds. No
    ``repr`` and no error shows the key. Any number of tasks or threads may use one client.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8700",
        api_key: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        retry_for_s: float = PATIENCE_S,
    ) -> None:
        self._where = Address(base_url, api_key, timeout_s)
        self._retry_for_s = retry_for_s
        self._http = httpx.AsyncClient(
            base_url=self._where.base_url,
            headers=self._where.headers,
            trust_env=not self._where.loopback,  # a proxy does not lead to this machine
        )

    def __repr__(self) -> str:
        return f"AsyncClient({self._where!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def publish(self, document: str | Path | Workflow) -> PublishedWorkflow:
        """Publishes a workflow: a document's text (YAML or JSON), its file, or its Python form."""
        return parsed(PublishedWorkflow, await self._json(calls.publication(document)))

    async def submit(
        self,
        workflow: str,
        input: Any = None,  # noqa: A002 -- the API's word
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        priority: int | None = None,
        metadata: Mapping[str, str | float | bool] | None = None,
        deadline_s: float | None = None,
        token_budget: int | None = None,
    ) -> Job:
        """Submits a job; the default ``version`` is the highest that is not retired.

        The same ``idempotency_key`` and arguments give the same job, for a day. Without one the client makes one, so
        that retries of the request make one job.
        """
        call = calls.submission(
            workflow,
            {} if input is None else input,
            idempotency_key,
            version=version,
            priority=priority,
            metadata=None if metadata is None else dict(metadata),
            deadline_s=deadline_s,
            token_budget=token_budget,
        )
        return parsed(Job, await self._json(call))

    async def get(self, job_id: str | UUID) -> Job:
        return parsed(Job, await self._json(Call("GET", job_path(job_id))))

    async def wait(self, job_id: str | UUID, timeout_s: float | None = None) -> Job:
        """The job once it has ended. Raises ``WaitTimeoutError`` after ``timeout_s`` seconds; None means no limit."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = calls.HELD_S if end is None else max(0.0, min(calls.HELD_S, end - time.monotonic()))
            job = parsed(Job, await self._json(calls.waiting(job_id, left)))
            if job.status.final:
                return job
            if end is not None and time.monotonic() >= end:
                message = f"job {job.id} is still {job.status} after {timeout_s:g} seconds"
                state = "it is still running" if job.waiting_for is None else f"it waits for {job.waiting_for}"
                raise WaitTimeoutError(message, remedy=f"wait longer; {state}")

    async def turns(self, job_id: str | UUID) -> tuple[TurnVisit, ...]:
        """Every turn with every attempt, open ones included."""
        return parsed(tuple[TurnVisit, ...], await self._json(Call("GET", f"{job_path(job_id)}/turns")))

    async def raw(self, attempt_id: str | UUID) -> bytes:
        """What the engine answered, byte for byte. Empty while nothing has arrived."""
        response = await self._do(Call("GET", f"/v1/attempts/{calls.segment(str(attempt_id))}/raw"))
        return response.content

    async def signal(
        self, job_id: str | UUID, name: str, payload: Any, *, idempotency_key: str | None = None
    ) -> Signalled:
        """Sends a signal. One that the open wait refuses raises ``RejectedError``; an early one is kept."""
        return parsed(Signalled, await self._json(calls.signalling(job_id, name, payload, idempotency_key)))

    async def settle(self, job_id: str | UUID, *, done: bool, result: Any = None, key: str | None = None) -> Job:
        """Settles whether the irreversible tool that the job waits for took effect, with its result if it did.

        ``key`` names the call (``Job.settlement.key``). A settlement is final: the same again is accepted, and a
        different one raises ``ConflictError``.
        """
        return parsed(Job, await self._json(calls.settlement(job_id, result, key, done=done)))

    async def replay(
        self,
        job_id: str | UUID,
        mode: str,
        from_turn: int | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 -- the API's word
        idempotency_key: str | None = None,
    ) -> Job:
        """A new job, made from this one: ``resume`` continues where it failed or was cancelled, ``fork`` at the turn
        ``from_turn`` or from the beginning, with the values of ``set`` at their dotted paths in the document.

        Earlier turns and tool results are carried over, and no effect takes place twice. The same key and arguments
        give the same job. Raises ``ConflictError`` if the job does not allow it, and ``RejectedError`` with every
        mistake in the request.
        """
        return parsed(Job, await self._json(calls.replaying(job_id, mode, from_turn, set, idempotency_key)))

    async def revalidate(
        self,
        job_id: str | UUID,
        set: Mapping[str, Any] | None = None,  # noqa: A002 -- the API's word
    ) -> Revalidated:
        """The job's stored answers judged again, by its document or a changed one. Asks no engine, writes nothing."""
        return parsed(Revalidated, await self._json(calls.revalidating(job_id, set)))

    async def cancel(self, job_id: str | UUID) -> Job:
        """Requests the job's cancellation, and returns the job as it is now."""
        return await self._change(job_id, "cancel")

    async def pause(self, job_id: str | UUID) -> Job:
        return await self._change(job_id, "pause")

    async def unpause(self, job_id: str | UUID) -> Job:
        return await self._change(job_id, "unpause")

    async def jobs(
        self,
        *,
        status: str | Iterable[str] | None = None,
        workflow: str | Iterable[str] | None = None,
        outcome: str | Iterable[str] | None = None,
        failure: str | Iterable[str] | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        metadata: Mapping[str, str | float | bool] | None = None,
        page: int = 100,
    ) -> AsyncIterator[Job]:
        """All jobs that match, newest first, read ``page`` at a time. A filter with several values matches any of them.

        ``outcome`` is that of any attempt. Times without a zone are UTC; as text they are RFC 3339.
        """
        filters = {
            "status": status,
            "workflow": workflow,
            "outcome": outcome,
            "failure": failure,
            "created_after": created_after,
            "created_before": created_before,
        }
        cursor: str | None = None
        while True:
            found = parsed(JobPage, await self._json(calls.listing(filters, metadata or {}, page, cursor)))
            for job in found.jobs:
                yield job
            cursor = found.next_cursor
            if cursor is None:
                return

    async def events(self, job_id: str | UUID, *, follow: bool = False, after: int = 0) -> AsyncIterator[Event]:
        """The history after the event ``after``. With ``follow`` until the job has ended, across broken connections."""
        path = f"{job_path(job_id)}/events"
        if follow:
            async for event in self._follow(path, after):
                yield event
            return
        while True:
            query = (("after", str(after)), ("limit", str(EVENTS)))
            found = parsed(tuple[Event, ...], await self._json(Call("GET", path, query)))
            for event in found:
                yield event
            if len(found) < EVENTS:
                return
            after = found[-1].ordinal

    async def _follow(self, path: str, after: int) -> AsyncIterator[Event]:
        trial = Trial(self._where, self._retry_for_s)
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
            timeout = httpx.Timeout(max(STREAM_S, self._where.timeout_s))
            try:
                async with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
                    if response.status_code == 204:  # ended, and all is read
                        return
                    if response.status_code >= 300:
                        await response.aread()
                    pause = trial.answered(response)
                    if pause is None:
                        trial, frames = Trial(self._where, self._retry_for_s), Frames()
                        async for chunk in response.aiter_raw():
                            for data in frames.feed(chunk):
                                event = parsed(Event, data)
                                after = event.ordinal
                                yield event
                                if event.kind in FINAL:
                                    return
                        pause = RECONNECT_S
            except httpx.TransportError as error:
                pause = trial.failed(error)
            await asyncio.sleep(pause)

    async def _change(self, job_id: str | UUID, word: str) -> Job:
        return parsed(Job, await self._json(Call("POST", f"{job_path(job_id)}/{word}")))

    async def _json(self, call: Call) -> Any:
        response = await self._do(call)
        return response.json()

    async def _do(self, call: Call) -> httpx.Response:
        trial = Trial(self._where, self._retry_for_s)
        while True:
            try:
                response = await self._http.request(
                    call.method,
                    call.path,
                    params=call.query or None,
                    content=call.content,
                    headers=call.headers,
                    timeout=self._where.timeout_of(call),
                )
            except httpx.TransportError as error:
                pause = trial.failed(error)
            else:
                again = trial.answered(response)
                if again is None:
                    return response
                pause = again
            await asyncio.sleep(pause)
