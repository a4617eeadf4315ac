"""Logs: JSON by the line where no one watches, colours where someone does, and secrets in neither."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.errors import BadInputError
from stepladder.wiring.logs import configure_logs, hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def logged(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_what_is_bound() -> None:
    out = io.StringIO()
    configure_logs("info", out)
    with structlog.contextvars.bound_contextvars(job="j", turn=1, attempt=2):
        structlog.get_logger("x").info("judged: ü", outcome="valid", lines="a\nb")
    [line] = logged(out)
    assert (line["event"], line["level"], line["job"], line["turn"], line["attempt"]) == (
        "judged: ü",
        "info",
        "j",
        1,
        2,
    )
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize(("level", "seen"), [("debug", 4), ("info", 3), ("warning", 2), ("ERROR", 1)])
def test_what_is_below_the_level_is_not_written(level: str, seen: int) -> None:
    out = io.StringIO()
    configure_logs(level, out)
    log = structlog.get_logger("x")
    for word in ("debug", "info", "warning", "error"):
        getattr(log, word)("said")
    assert len(logged(out)) == seen


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(BadInputError, match="loud"):
        configure_logs("loud", io.StringIO())


def test_a_terminal_gets_a_readable_line() -> None:
    out = Terminal()
    configure_logs("info", out)
    structlog.get_logger("x").info("job ended", status="failed", engine_api_key="sk-1234")
    assert "job ended" in out.getvalue()
    assert not out.getvalue().startswith("{")
    assert "sk-1234" not in out.getvalue()


@pytest.mark.parametrize(
    "fields",
    [
        {"api_key": "sesame"},
        {"Authorization": "Bearer sesame"},
        {"PASSWORD": "sesame"},
        {"headers": {"authorization": "Bearer sesame", "accept": "text"}},
        {"servers": [{"url": "postgresql://me:sesame@db/x"}]},
        {"url": "postgresql://me:sesame@db:5432/x"},
        {"url": "redis://:sesame@cache/0"},
        {"url": "postgresql://me:se@sesame@db/x"},
        {"conninfo": "host=db user=me password=sesame"},
        {"conninfo": "host=db password='se sesame' user=me"},
        {"url": "postgresql://db/x?user=me&password=sesame&sslmode=require"},
        {"event": "cannot reach postgresql://me:sesame@db/x today"},
    ],
)
def test_no_secret_reaches_the_line(fields: dict[str, Any]) -> None:
    out = io.StringIO()
    configure_logs("debug", out)
    structlog.get_logger("x").debug(fields.pop("event", "said"), **fields)
    assert "sesame" not in out.getvalue()
    assert "***" in out.getvalue()


def test_a_traceback_hides_them_too() -> None:
    out = io.StringIO()
    configure_logs("info", out)
    try:
        raise ConnectionError("postgresql://me:sesame@db/x")
    except ConnectionError:
        structlog.get_logger("x").exception("broken")
    assert "sesame" not in out.getvalue()
    assert "ConnectionError" in out.getvalue()


@given(st.dictionaries(st.sampled_from(["tokens", "prompt_tokens", "state", "duration_ms"]), st.integers() | st.text()))
def test_what_is_no_secret_stays_as_it_is(fields: dict[str, Any]) -> None:
    plain = {name: value for name, value in fields.items() if "@" not in str(value) and "=" not in str(value)}
    assert hide_secrets(None, "info", dict(plain)) == plain
