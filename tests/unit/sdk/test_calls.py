"""The client without its sockets: pauses, what is sent, and the reading of a stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.errors import BadInputError
from stepladder.sdk.calls import (
    FIRST_S,
    LONGEST_S,
    Frames,
    job_path,
    listing,
    pause_before,
    posting,
    replaying,
    retry_after_s,
    submission,
)
from stepladder.sdk.problems import (
    ConflictError,
    DeniedError,
    NotFoundError,
    ProblemError,
    RejectedError,
    UnavailableError,
    problem_of,
)
from stepladder.sdk.trial import Address

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
chances = st.floats(0, 1)


@given(st.integers(1, 10_000), chances)
def test_pauses_are_bounded_and_never_0(again: int, chance: float) -> None:
    pause = pause_before(again, 0.0, 1e9, None, chance)
    assert pause is not None
    assert FIRST_S / 2 <= pause <= LONGEST_S


@given(st.integers(1, 50), st.floats(0, 100), st.floats(0, 100), st.none() | st.floats(0, 100), chances)
def test_patience_is_kept_and_retry_after_respected(
    again: int, waited_s: float, patience_s: float, wanted_s: float | None, chance: float
) -> None:
    pause = pause_before(again, waited_s, patience_s, wanted_s, chance)
    if pause is not None:
        assert waited_s + pause <= patience_s
        assert wanted_s is None or pause >= wanted_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("soon", None),
        ("-1", None),
        ("²", None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds


def test_a_submission_has_a_key_and_only_the_given_fields() -> None:
    one, other = submission("bill", {}, None, version=None, priority=0), submission("bill", {}, None)
    assert one.headers["Idempotency-Key"] != other.headers["Idempotency-Key"]
    assert json.loads(one.content or b"") == {"workflow": "bill", "input": {}, "priority": 0}
    assert submission("bill", {}, "k1").headers["Idempotency-Key"] == "k1"


@pytest.mark.parametrize("key", ["", "schlüssel", "a\nb", " a"])
def test_an_invalid_idempotency_key_is_refused(key: str) -> None:
    with pytest.raises(BadInputError, match="idempotency key"):
        posting("/v1/jobs", {}, key=key)


@pytest.mark.parametrize("value", [float("nan"), {"a": object()}, {1j: 2}])
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(BadInputError, match="JSON"):
        posting("/v1/jobs", value)


def test_an_id_stays_one_segment_of_the_path() -> None:
    assert job_path("../workflows?x=1#y") == "/v1/jobs/%2E%2E%2Fworkflows%3Fx%3D1%23y"


def test_filters_are_written_as_the_api_reads_them() -> None:
    wanted = {"status": ["failed", "cancelled"], "workflow": "bill", "failure": None, "created_after": NOW}
    call = listing(wanted, {"urgent": True, "order": 4711}, 10, "c")
    assert call.query == (
        ("status", "failed"),
        ("status", "cancelled"),
        ("workflow", "bill"),
        ("created_after", "2026-01-31T12:00:00+00:00"),
        ("metadata.urgent", "true"),
        ("metadata.order", "4711"),
        ("limit", "10"),
        ("cursor", "c"),
    )


@given(st.lists(st.text()), st.integers(1, 7))
def test_a_stream_reads_the_same_however_it_is_cut(texts: list[str], size: int) -> None:
    """Line breaks of Unicode's stand in JSON as they are."""
    stream = "retry: 1000\n\n: still here\n\n" + "".join(
        f"id: {n}\nevent: x\ndata: {json.dumps(text, ensure_ascii=False)}\n\n" for n, text in enumerate(texts)
    )
    content, frames = stream.encode(), Frames()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert [data for piece in pieces for data in frames.feed(piece)] == texts


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, NotFoundError), (409, ConflictError), (401, DeniedError), (422, RejectedError), (503, UnavailableError)],
)
def test_a_problem_keeps_its_words(status: int, kind: type[ProblemError]) -> None:
    errors = [{"pointer": "/input/team", "reason": "must be a string"}]
    body = {"type": "urn:stepladder:problem:x-y", "title": "X y", "detail": "it is", "remedy": "r", "errors": errors}
    problem = problem_of(status, json.dumps(body).encode())
    assert type(problem) is kind
    assert (problem.status, problem.type, problem.title, problem.detail) == (status, "x-y", "X y", "it is")
    assert (problem.errors[0].pointer, problem.remedy) == ("/input/team", "r")
    assert str(problem) == "it is\n  /input/team: must be a string"


@given(st.integers(400, 599), st.binary())
def test_any_error_body_is_a_problem(status: int, body: bytes) -> None:
    assert problem_of(status, body).status == status


def test_neither_key_nor_password_is_shown() -> None:
    where = Address("http://user:hush@127.0.0.1:8700", "secret", 1.0)
    assert "hush" not in repr(where)
    assert "secret" not in repr(where)
    with pytest.raises(BadInputError) as refused:
        Address("http://127.0.0.1:8700", "sécret", 1.0)
    assert "sécret" not in str(refused.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8700", "ftp://host", "http://"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="URL"):
        Address(url, None, 1.0)


def test_a_replay_has_a_key_of_its_own() -> None:
    first, second = (replaying("j", "fork", 2, {"sampling.seed": 1}, None) for _ in range(2))
    assert first.content is not None
    assert json.loads(first.content) == {"mode": "fork", "from_turn": 2, "set": {"sampling.seed": 1}}
    assert len({first.headers["Idempotency-Key"], second.headers["Idempotency-Key"]}) == 2
    assert replaying("j", "resume", None, None, "k").headers["Idempotency-Key"] == "k"
