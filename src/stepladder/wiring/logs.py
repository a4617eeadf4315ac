"""Logs: one line per event, readable in a terminal and JSON elsewhere, with the ids of job, turn and attempt.

Prompts and answers are not logged at ``info``, and secrets at no level.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
SECRET_WORDS = ("key", "password", "secret", "token", "authorization")
NOT_SECRET = ("idempotency_key", "key_count", "prompt_tokens", "completion_tokens", "tokens", "token_budget")
_PASSWORD_IN_URL = re.compile(r"(?<=://)([^:/@\s]*):[^\s]*@")
_PASSWORD_IN_WORDS = re.compile(r"\b(password\s*=\s*)('[^']*'|[^\s&]+)", re.IGNORECASE)


def configure_logs(level: str = "info", stream: TextIO | None = None) -> None:
    """Configures structlog to write to ``stream`` (standard error). Raises ``BadInputError`` for an unknown level."""
    if level.lower() not in LEVELS:
        raise BadInputError(f"the log level {level!r} is unknown", remedy=f"use one of {', '.join(LEVELS)}")
    out = stream or sys.stderr
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=True)
        if out.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it logs every failed connection, and we the first
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            hide_secrets,  # after the traceback is text, which may quote a URL
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level.lower()]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )


def say(event: str, **words: object) -> None:
    """Logs a line about the process itself, at ``info``."""
    structlog.get_logger("stepladder").info(event, **words)


def hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that hides values of secret names and passwords in URLs."""
    for name, value in event.items():
        event[name] = _hidden(name, value)
    return event


def _hidden(name: str, value: Any) -> Any:
    if name not in NOT_SECRET and any(word in name.lower() for word in SECRET_WORDS):
        return "***"
    match value:
        case str():
            return _PASSWORD_IN_WORDS.sub(r"\1***", _PASSWORD_IN_URL.sub(r"\1:***@", value))
        case dict():
            return {key: _hidden(str(key), inner) for key, inner in value.items()}
        case list() | tuple():
            return [_hidden("", inner) for inner in value]
        case _:
            return value
