"""The one store: what is published, submitted, claimed, committed and signalled. Every method is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import psycopg

from stepladder.models import hot, intake
from stepladder.models.load import encode_raw, job_of, pending_of, signal_of
from stepladder.models.records import (
    Claim,
    Inbox,
    KeyTaken,
    NewJob,
    Publication,
    Pulse,
    Receipt,
    Submitted,
    WorkflowRow,
)
from stepladder.models.rows import json_text, new_job, plain, step_json
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Connection, Database
    from stepladder.models.records import Stamp, SubmissionKey
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Attempt, Job
    from stepladder.workflows.step import Step


KEYS_KEPT_S = 24 * 3600.0
"""For how long a submission under a key is known again."""


class Store:
    """Writes to an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks.

    Nobody knows then whether the write took place: let go of the job, and claim it again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # Workflows ------------------------------------------------------------------------------------------------------

    async def publish(self, name: str, version: int, hash: str, document: Json) -> Publication:  # noqa: A002 -- the word
        """Writes a definition under its name and version, once. ``hash`` says which definitions are the same."""
        published = {"name": name, "version": version, "hash": hash, "document": json_text(document)}
        if await self._database.write(_PUBLISH, published):
            return Publication.PUBLISHED
        row = await self._database.row(_WORKFLOW, {"name": name, "version": version})
        same = row is not None and row["hash"] == hash
        return Publication.ALREADY_PUBLISHED if same else Publication.DEFINITION_CHANGED

    async def workflow(self, name: str, version: int | None = None) -> WorkflowRow | None:
        """The definition under that name and version; without a version, the highest that is not retired."""
        row = await self._database.row(_WORKFLOW, {"name": name, "version": version})
        return None if row is None else WorkflowRow(**row)

    async def keep_schemas(self, schemas: Mapping[str, Json]) -> None:
        """Keeps output schemas by their hash, so that a request can be built again when a tool's schema has changed.

        Call it before the first job of a workflow that uses them; those that are there already are left alone.
        """
        rows = [{"hash": key, "schema": json_text(schema)} for key, schema in schemas.items()]
        await self._database.write(_KEEP_SCHEMAS, {"schemas": json_text(rows)})

    # Jobs -----------------------------------------------------------------------------------------------------------

    async def submit(
        self,
        job: Job,
        workflow: str,
        version: int,
        *,
        principal: str = "local",
        priority: int = 0,
        metadata: JsonObject | None = None,
        replay_of: UUID | None = None,
    ) -> UUID:
        """Writes a new job, with an ``uuid7()`` as its id, and its first event, ``job_created``. It is due at once.

        A job of higher ``priority`` is claimed first. Raises ``BadInputError`` for metadata that PostgreSQL cannot
        hold as ``jsonb`` (NUL in a text).
        """
        await self.submit_many([NewJob(job, workflow, version, principal, priority, metadata or {}, replay_of)])
        return job.id

    async def submit_many(self, jobs: Sequence[NewJob], key: SubmissionKey | None = None) -> Submitted | KeyTaken:
        """Writes new jobs as ``submit`` does, all of them or none. Under a ``key`` they are written once.

        The same key and fingerprint again give the jobs of the first time, for ``KEYS_KEPT_S``; of several at once,
        one writes, and the others wait for it.
        """
        try:
            row = await self._database.row(
                intake.SUBMIT,
                {
                    "jobs": json_text([new_job(job) for job in jobs]),
                    "job_ids": [new.job.id for new in jobs],
                    "key_principal": None if key is None else key.principal,
                    "key": None if key is None else key.key,
                    "fingerprint": None if key is None else key.fingerprint,
                    "kept_s": KEYS_KEPT_S,
                    "kind": EventKind.JOB_CREATED,
                },
            )
        except psycopg.errors.UntranslatableCharacter:
            raise BadInputError(
                "The job's metadata hold a character that cannot be stored.", remedy="Take \\u0000 out of them."
            ) from None
        if key is None or row is None or row["written"] or not jobs:
            return Submitted(tuple(new.job.id for new in jobs))
        known = await self.submitted(key)
        if known is None:  # the other one's key came to its end just now
            return await self.submit_many(jobs, key)
        return known

    async def submitted(self, key: SubmissionKey) -> Submitted | KeyTaken | None:
        """What was submitted under the key; None if nothing was, or too long ago."""
        parameters = {"principal": key.principal, "key": key.key, "kept_s": KEYS_KEPT_S}
        row = await self._database.row(intake.SUBMITTED, parameters)
        if row is None:
            return None
        return Submitted(tuple(row["job_ids"]), again=True) if row["fingerprint"] == key.fingerprint else KeyTaken()

    async def claim(self, owner: str, lease_s: float, job_id: UUID | None = None) -> Claim | None:
        """Takes a job that is due and in nobody's hands: the one named, or else the first by priority and time.

        One statement takes the lease and raises the fencing token, so that of two workers one wins. None if there is
        nothing to take. ``owner`` names the worker, for people.
        """
        statement = hot.CLAIM_NEXT if job_id is None else hot.CLAIM_ONE
        async with self._database.connection() as connection:
            cursor = await connection.execute(statement, {"owner": owner, "lease_s": lease_s, "job": job_id})
            row = await cursor.fetchone()
            return None if row is None else await _load(connection, row, owner, lease_s)

    async def arrived(
        self, claim: Claim, attempt: Attempt, arrival: Arrival, *, ttft_ms: float | None, duration_ms: float
    ) -> bool:
        """Writes what came for an open attempt, before it is judged. Times are in milliseconds.

        False if the worker has the job no longer: it is in other hands, and nothing is written; or it is paused, and
        the answer is kept for whoever claims the job later.
        """
        body, encoding = encode_raw(arrival.body, streamed=arrival.streamed)
        common = {
            "job": claim.job.id,
            "fence": claim.fence,
            "turn": attempt.turn,
            "ordinal": attempt.ordinal,
            "streamed": arrival.streamed,
            "raw": body,
            "raw_encoding": encoding,
            "ttft_ms": ttft_ms,
            "duration_ms": duration_ms,
        }
        came: dict[str, object]
        match arrival:
            case Received():
                came = {
                    "http_status": arrival.status,
                    "retry_after_s": arrival.retry_after_s,
                    "lost_cause": None,
                    "lost_detail": None,
                }
            case Lost():
                came = {
                    "http_status": arrival.status,
                    "retry_after_s": None,
                    "lost_cause": arrival.cause,
                    "lost_detail": json_text(arrival.detail),
                }
            case _:
                assert_never(arrival)
        return await self._database.row(hot.ARRIVED, common | came) is not None

    async def commit(self, claim: Claim, step: Step, stamp: Stamp | None = None, *, release: bool = True) -> bool:
        """Writes a step, whole or, if the job is in other hands, not at all: then it answers False.

        ``stamp`` goes with ``step.opened``. To ask or to run a tool keeps the job and renews the lease; to wait or to
        finish lets go of it, and so does a rest unless ``release`` is False. A job that was let go of is due again
        when its time comes, when a signal comes that ``claim`` does not know (not for a rest), or when somebody asks
        for it to end.
        """
        parameter = step_json(claim, step, stamp, release=release)
        return await self._database.row(hot.COMMIT, {"step": parameter}) is not None

    async def heartbeat(self, claim: Claim, lease_s: float | None = None) -> Pulse:
        """Renews the lease, for as long as it was taken for unless ``lease_s`` says otherwise."""
        seconds = claim.lease_s if lease_s is None else lease_s
        row = await self._database.row(hot.HEARTBEAT, {"job": claim.job.id, "fence": claim.fence, "lease_s": seconds})
        if row is None:
            return Pulse.LOST
        return Pulse.CANCELLING if row["cancel_requested"] else Pulse.HELD

    async def release(self, claim: Claim, due_at: datetime | None = None) -> bool:
        """Hands a job back with its work unfinished; it is due at ``due_at``, or at once. False if it was not held."""
        held = {
            "job": claim.job.id,
            "fence": claim.fence,
            "known_signals": claim.known_signals,
            "known_cancel": claim.cancel_requested,
            "due_at": due_at,
        }
        return await self._database.row(hot.RELEASE, held) is not None

    # From outside ---------------------------------------------------------------------------------------------------

    async def signal(self, job_id: UUID, signal_id: UUID, name: str, payload: Json) -> Receipt:
        """Keeps a signal for the job, once by its id, and wakes the job if it waits."""
        row = await self._database.row(
            intake.SIGNAL, {"job": job_id, "id": signal_id, "name": plain(name), "payload": json_text(payload)}
        )
        match row:
            case {"kept": True}:
                return Receipt.ACCEPTED
            case {"seen": True}:
                return Receipt.DUPLICATE
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN

    async def pending_signals(self, job_id: UUID) -> Inbox:
        """The signals that nobody has taken, oldest first."""
        async with self._database.connection() as connection:
            # The count first: a signal that slips in between is then seen twice, and never missed.
            count = await (await connection.execute(hot.SIGNALS_RECEIVED, {"job": job_id})).fetchone()
            rows = await (await connection.execute(hot.SIGNALS, {"job": job_id})).fetchall()
        return Inbox(0 if count is None else count["signals_received"], tuple(signal_of(row) for row in rows))

    async def request_cancel(self, job_id: UUID) -> Receipt:
        """Asks for the job to end. Its worker learns of it with a heartbeat; in nobody's hands it is due at once."""
        match await self._database.row(intake.CANCEL, {"job": job_id}):
            case {"asked": True}:
                return Receipt.ACCEPTED
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN

    async def sent_signal(self, job_id: UUID, signal_id: UUID) -> tuple[str, Json] | None:
        """The name and the payload of a signal that came under this id."""
        row = await self._database.row(intake.SIGNAL_SENT, {"job": job_id, "id": signal_id})
        return None if row is None else (row["name"], row["payload"])

    async def pause(self, job_id: UUID, by: str) -> Receipt:
        """Pauses a job, in the name of ``by``: nobody claims it. A worker that has it finishes the attempt under way.

        Its deadline stands still. ``FINAL`` if it has ended or is being cancelled.
        """
        return await self._switch(intake.PAUSE, EventKind.JOB_PAUSED, job_id, by)

    async def unpause(self, job_id: UUID, by: str) -> Receipt:
        """Lets a paused job go on where it was. ``DUPLICATE`` if it was not paused."""
        return await self._switch(intake.UNPAUSE, EventKind.JOB_UNPAUSED, job_id, by)

    async def _switch(self, statement: str, kind: EventKind, job_id: UUID, by: str) -> Receipt:
        match await self._database.row(statement, {"job": job_id, "kind": kind, "data": json_text({"by": by})}):
            case {"done": True}:
                return Receipt.ACCEPTED
            case {"already": True}:
                return Receipt.DUPLICATE
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN


async def _load(connection: Connection, row: dict[str, Any], owner: str, lease_s: float) -> Claim:
    """The claimed job. Nobody else may write to it, so that it is read in several statements, sent in one go."""
    async with connection.pipeline():
        cursors = [
            await connection.execute(statement, {"job": row["id"]})
            for statement in (hot.TURNS, hot.ATTEMPTS, hot.TOOL_CALLS, hot.WAITS, hot.MESSAGES, hot.SIGNALS)
        ]
    turns, attempts, tool_calls, waits, messages, signals = [await cursor.fetchall() for cursor in cursors]
    job = job_of(row, turns=turns, attempts=attempts, tool_calls=tool_calls, waits=waits, messages=messages)
    return Claim(
        job=job,
        workflow=row["workflow"],
        version=row["version"],
        owner=owner,
        fence=row["fence"],
        lease_s=lease_s,
        claimed_at=row["claimed_at"],
        known_signals=row["signals_received"],
        signals=tuple(signal_of(signal) for signal in signals),
        cancel_requested=row["cancel_requested"],
        pending=pending_of(job, attempts),
        taken_over=row["taken_over"],
    )


_PUBLISH = """
INSERT INTO workflows (name, version, hash, document)
VALUES (%(name)s, %(version)s, %(hash)s, %(document)s::json)
ON CONFLICT (name, version) DO NOTHING
"""

_WORKFLOW = """
SELECT name, version, hash, document, created_at, retired FROM workflows
WHERE name = %(name)s AND (version = %(version)s::int OR %(version)s::int IS NULL AND NOT retired)
ORDER BY version DESC LIMIT 1
"""

_KEEP_SCHEMAS = """
INSERT INTO output_schemas (hash, schema)
SELECT new.hash, new.schema::json FROM json_to_recordset(%(schemas)s::json) AS new(hash text, schema text)
ON CONFLICT (hash) DO NOTHING
"""
