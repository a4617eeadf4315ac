"""The client of the HTTP API. ``aclient`` holds the same for asyncio."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import httpx

from stepladder.schemas.event import FINAL
from stepladder.sdk import calls
from stepladder.sdk.calls import Call, Frames, job_path
from stepladder.sdk.problems import WaitTimeoutError
from stepladder.sdk.results import Event, Job, Page, Published, Revalidated, Signalled, Turn, parsed
from stepladder.sdk.trial import PATIENCE_S, RECONNECT_S, STREAM_S, TIMEOUT_S, Address, Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from uuid import UUID

    from stepladder.schemas.document import Workflow

EVENTS = 1000  # read at once


class Client:
    """The API at ``base_url``; any number of threads may use one. Use it as ``with``, or end it with ``close``.

    Every call raises ``ProblemError`` for what the API refuses, and ``UnreachableError`` where it does not answer.
    A connection that fails, and a 429, 502, 503 or 504, are tried again with growing pauses, or when Retry-After says,
    for ``retry_for_s`` seconds in all; 0 means once. No answer may take longer than ``timeout_s`` seconds. The key is
    shown by no ``repr`` and no error.
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
        self._http = httpx.Client(
            base_url=self._where.base_url,
            headers=self._where.headers,
            trust_env=not self._where.loopback,  # a proxy that is set leads elsewhere than to this machine
        )

    def __repr__(self) -> str:
        return f"Client({self._where!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def publish(self, document: str | Path | Workflow) -> Published:
        """Publishes a workflow: a document's text (YAML or JSON), its file, or its Python form."""
        return parsed(Published, self._json(calls.publication(document)))

    def submit(
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
        """Submits a job. ``version`` is the highest that is not retired unless it is given.

        The same ``idempotency_key`` and arguments give the same job, for a day; without one the client makes one, so
        that however often it has to send the request, one job is made.
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
        return parsed(Job, self._json(call))

    def get(self, job_id: str | UUID) -> Job:
        return parsed(Job, self._json(Call("GET", job_path(job_id))))

    def wait(self, job_id: str | UUID, timeout_s: float | None = None) -> Job:
        """The job once it has ended. Raises ``WaitTimeoutError`` after ``timeout_s`` seconds; None waits for ever."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = calls.HELD_S if end is None else max(0.0, min(calls.HELD_S, end - time.monotonic()))
            job = parsed(Job, self._json(calls.waiting(job_id, left)))
            if job.status.final:
                return job
            if end is not None and time.monotonic() >= end:
                message = f"job {job.id} is still {job.status} after {timeout_s:g} seconds"
                where = "it goes on" if job.waiting_for is None else f"it waits for {job.waiting_for}"
                raise WaitTimeoutError(message, remedy=f"wait longer; {where}")

    def turns(self, job_id: str | UUID) -> tuple[Turn, ...]:
        """Every turn with every attempt, the open ones included."""
        return parsed(tuple[Turn, ...], self._json(Call("GET", f"{job_path(job_id)}/turns")))

    def raw(self, attempt_id: str | UUID) -> bytes:
        """What the engine answered, byte for byte. Empty while nothing has come."""
        response = self._do(Call("GET", f"/v1/attempts/{calls.segment(str(attempt_id))}/raw"))
        return response.content

    def signal(self, job_id: str | UUID, name: str, payload: Any, *, idempotency_key: str | None = None) -> Signalled:
        """Sends a signal. What the open wait would refuse raises ``RejectedError``; one that comes early is kept."""
        return parsed(Signalled, self._json(calls.signalling(job_id, name, payload, idempotency_key)))

    def settle(self, job_id: str | UUID, *, done: bool, result: Any = None, key: str | None = None) -> Job:
        """Says whether the irreversible tool that the job waits for took effect, and what its result is if it did.

        ``key`` names the call that is meant (``Job.settlement.key``). What was said of a call stands: the same again is
        no error, and anything else raises ``ConflictError``.
        """
        return parsed(Job, self._json(calls.settlement(job_id, result, key, done=done)))

    def replay(
        self,
        job_id: str | UUID,
        mode: str,
        from_turn: int | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 -- the API's word
        idempotency_key: str | None = None,
    ) -> Job:
        """A new job, made from this one: ``resume`` goes on where it failed or was cancelled, ``fork`` from the turn
        ``from_turn`` or from the beginning, by the document with the values of ``set`` at their dotted paths.

        What was accepted and done before is taken over, and no effect takes place twice. The same key and arguments
        give the same job. Raises ``ConflictError`` where the job does not allow it, and ``RejectedError`` with every
        place where what is asked is wrong.
        """
        return parsed(Job, self._json(calls.replaying(job_id, mode, from_turn, set, idempotency_key)))

    def revalidate(
        self,
        job_id: str | UUID,
        set: Mapping[str, Any] | None = None,  # noqa: A002 -- the API's word
    ) -> Revalidated:
        """The job's stored answers judged again, by its document or a changed one. Asks no engine, writes nothing."""
        return parsed(Revalidated, self._json(calls.revalidating(job_id, set)))

    def cancel(self, job_id: str | UUID) -> Job:
        """Asks for the job to end, and gives it as it stands."""
        return self._change(job_id, "cancel")

    def pause(self, job_id: str | UUID) -> Job:
        return self._change(job_id, "pause")

    def unpause(self, job_id: str | UUID) -> Job:
        return self._change(job_id, "unpause")

    def jobs(
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
    ) -> Iterator[Job]:
        """All jobs that pass, newest first, read ``page`` at a time. Of several words in one filter any will do.

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
            found = parsed(Page, self._json(calls.listing(filters, metadata or {}, page, cursor)))
            yield from found.jobs
            cursor = found.next_cursor
            if cursor is None:
                return

    def events(self, job_id: str | UUID, *, follow: bool = False, after: int = 0) -> Iterator[Event]:
        """The history behind the event ``after``. With ``follow`` it goes on until the job has ended, over any broken
        connection.
        """
        path = f"{job_path(job_id)}/events"
        if follow:
            for event in self._follow(path, after):
                yield event
            return
        while True:
            query = (("after", str(after)), ("limit", str(EVENTS)))
            found = parsed(tuple[Event, ...], self._json(Call("GET", path, query)))
            for event in found:
                yield event
            if len(found) < EVENTS:
                return
            after = found[-1].ordinal

    def _follow(self, path: str, after: int) -> Iterator[Event]:
        trial = Trial(self._where, self._retry_for_s)
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
            timeout = httpx.Timeout(max(STREAM_S, self._where.timeout_s))
            try:
                with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
                    if response.status_code == 204:  # ended, and all is read
                        return
                    if response.status_code >= 300:
                        response.read()
                    pause = trial.answered(response)
                    if pause is None:
                        trial, frames = Trial(self._where, self._retry_for_s), Frames()
                        for chunk in response.iter_raw():
                            for data in frames.feed(chunk):
                                event = parsed(Event, data)
                                after = event.ordinal
                                yield event
                                if event.kind in FINAL:
                                    return
                        pause = RECONNECT_S
            except httpx.TransportError as error:
                pause = trial.failed(error)
            time.sleep(pause)

    def _change(self, job_id: str | UUID, word: str) -> Job:
        return parsed(Job, self._json(Call("POST", f"{job_path(job_id)}/{word}")))

    def _json(self, call: Call) -> Any:
        response = self._do(call)
        return response.json()

    def _do(self, call: Call) -> httpx.Response:
        trial = Trial(self._where, self._retry_for_s)
        while True:
            try:
                response = self._http.request(
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
            time.sleep(pause)
