"""The client without sockets: requests, pauses between retries, and the reading of a stream."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stepladder.schemas.document import Workflow
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FIRST_S = 0.1
LONGEST_S = 5.0
HELD_S = 30.0
"""How long the API is asked to hold an answer while a job runs; it allows 60."""

RETRIED = (429, 502, 503, 504)
REVALIDATE = "revalidate"
NOT_RETRIED = "missing-tools"
"""A server that lacks a workflow's tools will lack them on a retry."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. Each may be retried: it is idempotent, or carries an idempotency key.

    The server may hold its answer for ``held_s`` seconds.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    held_s: float = 0.0


def to_json(value: Any) -> bytes:
    """Raises ``BadInputError`` for a value that JSON cannot represent."""
    try:
        return json_text(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInputError(f"this cannot be sent as JSON: {error}", remedy="send plain JSON values") from None


def posting(path: str, value: Any, *, key: str | None = None) -> Call:
    named = {} if key is None else {"Idempotency-Key": header(key, "the idempotency key")}
    return Call("POST", path, content=to_json(value), headers={"Content-Type": "application/json", **named})


def header(text: str, what: str) -> str:
    """Raises ``BadInputError`` for a text that a header cannot hold, without quoting it."""
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise BadInputError(f"{what} cannot be sent", remedy="use printable ASCII characters, without spaces around")
    return text


def submission(workflow: str, value: Any, key: str | None, **given: Any) -> Call:
    """Without a key it gets its own, so that retries make one job."""
    fields = {name: one for name, one in given.items() if one is not None}
    return posting("/v1/jobs", {"workflow": workflow, "input": value, **fields}, key=_key(key))


def waiting(job_id: object, within_s: float) -> Call:
    """For a job, held until it ends or the seconds have passed."""
    return Call("GET", job_path(job_id), (("wait", f"{within_s:.3f}"),), held_s=within_s)


def signalling(job_id: object, name: str, payload: Any, key: str | None) -> Call:
    return posting(f"{job_path(job_id)}/signals/{segment(name)}", payload, key=_key(key))


def settlement(job_id: object, result: Any, key: str | None, *, done: bool) -> Call:
    """It may be retried: a settlement is stored once."""
    said = {"done": True, "result": result} if done else {"done": False}
    return posting(f"{job_path(job_id)}/settle", said if key is None else {**said, "key": key})


def replaying(
    job_id: object, mode: str, from_turn: int | None, changes: Mapping[str, Any] | None, key: str | None
) -> Call:
    """Without a key it gets its own, so that retries make one job."""
    if mode == REVALIDATE:
        raise BadInputError("revalidate makes no new job", remedy="call revalidate()")
    asked = {"mode": mode, "set": dict(changes or {})} | ({} if from_turn is None else {"from_turn": from_turn})
    return posting(f"{job_path(job_id)}/replays", asked, key=_key(key))


def revalidating(job_id: object, changes: Mapping[str, Any] | None) -> Call:
    """It writes nothing."""
    return posting(f"{job_path(job_id)}/replays", {"mode": REVALIDATE, "set": dict(changes or {})})


def _key(key: str | None) -> str:
    return str(uuid.uuid4()) if key is None else key


def publication(document: str | Path | Workflow) -> Call:
    """A document's text, its file, or its Python form. Text of one line that names a file is a file."""
    if isinstance(document, Workflow):
        return posting("/v1/workflows", document.definition())
    if isinstance(document, str) and "\n" not in document and Path(document).is_file():
        document = Path(document)
    if isinstance(document, Path):
        try:
            content = document.read_bytes()
        except OSError as error:
            message = f"{document} cannot be read: {error.strerror or error}"
            raise BadInputError(message, remedy="name a readable file") from None
    else:
        content = document.encode("utf-8", "surrogatepass")
    return Call("POST", "/v1/workflows", content=content, headers={"Content-Type": "application/yaml"})


def listing(filters: Mapping[str, Any], metadata: Mapping[str, Any], limit: int, cursor: str | None) -> Call:
    query: list[tuple[str, str]] = []
    for name, value in filters.items():
        several: Iterable[Any] = (value,) if value is None or isinstance(value, str | datetime) else value
        query += [(name, _word(one)) for one in several if one is not None]
    query += [(f"metadata.{key}", _word(value)) for key, value in metadata.items()]
    query.append(("limit", str(limit)))
    if cursor is not None:
        query.append(("cursor", cursor))
    return Call("GET", "/v1/jobs", tuple(query))


def _word(value: Any) -> str:
    match value:
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def job_path(job_id: object) -> str:
    return f"/v1/jobs/{segment(str(job_id))}"


def segment(text: str) -> str:
    """A text as one segment of a path; ``..`` must not lead to another route."""
    return quote(text, safe="").replace(".", "%2E")


def pause_before(
    again: int, waited_s: float, patience_s: float, retry_after_s: float | None, chance: float
) -> float | None:
    """Seconds until the ``again``-th retry, from 1 on; None for no more retries.

    ``waited_s`` seconds have passed since the first failure, of ``patience_s`` allowed. The pause doubles, and
    ``chance`` (0 to 1) takes up to half of it, so that clients do not return together. A Retry-After is waited for in
    full, or, if it is too long, not at all.
    """
    own = min(FIRST_S * 2 ** min(again - 1, 16), LONGEST_S) * (1 - chance / 2)
    pause = max(own, retry_after_s or 0.0)
    return pause if waited_s + pause <= patience_s else None


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds, from a number or a date; None for anything else."""
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())


class Frames:
    """Reads server-sent events from bytes as they come. Lines end with LF alone: JSON may hold other line breaks."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """The data of every event that is complete by now, as JSON."""
        *frames, self._rest = (self._rest + chunk).split(b"\n\n")
        for frame in frames:
            data = [line.removeprefix(b"data:") for line in frame.split(b"\n") if line.startswith(b"data:")]
            if data:
                yield json.loads(b"\n".join(data))
