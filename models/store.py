"""The one store: what is published, submitted, claimed, committed and signalled. Every method is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import psycopg

from stepladder.models import hot
from stepladder.models.load import encode_raw, job_of, pending_of, signal_of
from stepladder.models.records import Claim, Inbox, Publication, Pulse, Receipt, WorkflowRow
from stepladder.models.rows import json_text, plain, step_json
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Connection, Database
    from stepladder.models.records import Stamp
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Attempt, Job
    from stepladder.workflows.step import Step


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
        """The definition under that name and version; without a version, the highest."""
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
        try:
            await self._database.write(
                hot.SUBMIT,
                {
                    "id": job.id,
                    "lineage": job.lineage,
                    "replay_of": replay_of,
                    "workflow": workflow,
                    "version": version,
                    "status": job.status,
                    "input": json_text(job.input),
                    "metadata": json_text(metadata or {}),
                    "principal": principal,
                    "scopes": None if job.scopes is None else sorted(job.scopes),
                    "priority": priority,
                    "token_budget": job.token_budget,
                    "deadline_at": job.deadline_at,
                    "created_at": job.created_at,
                    "kind": EventKind.JOB_CREATED,
                },
            )
        except psycopg.errors.UntranslatableCharacter:
            raise BadInputError(
                "The job's metadata hold a character that cannot be stored.", remedy="Take \\u0000 out of them."
            ) from None
        return job.id

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

        False if the job is in other hands: then nothing is written.
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
            hot.SIGNAL, {"job": job_id, "id": signal_id, "name": plain(name), "payload": json_text(payload)}
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
        match await self._database.row(hot.CANCEL, {"job": job_id}):
            case {"asked": True}:
                return Receipt.ACCEPTED
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
SELECT name, version, hash, document, created_at FROM workflows
WHERE name = %(name)s AND version = COALESCE(%(version)s, version)
ORDER BY version DESC LIMIT 1
"""

_KEEP_SCHEMAS = """
INSERT INTO output_schemas (hash, schema)
SELECT new.hash, new.schema::json FROM json_to_recordset(%(schemas)s::json) AS new(hash text, schema text)
ON CONFLICT (hash) DO NOTHING
"""
