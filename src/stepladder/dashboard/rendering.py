"""Templates, static files, and how values look in them."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from stepladder.dashboard import highlighting, messages
from stepladder.dashboard.context import session_of

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request

HERE = Path(__file__).parent

# ``same-origin``: under ``no-referrer`` a browser sends `Origin: null` with forms, which the access check rejects.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONG = 600
"""Characters beyond which an answer is folded, about ten lines."""


class Assets(StaticFiles):
    """Static files, which browsers may keep for good: their URLs change with their content."""

    def __init__(self) -> None:
        super().__init__(directory=HERE / "static")

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS | {"Cache-Control": "public, max-age=31536000, immutable"})
        return response


@cache
def asset_url(name: str) -> str:
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:16]}"


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A page, or a part of one. Unpaired surrogates, which UTF-8 lacks, are written as escapes."""
    text = _environment().get_template(template).render(session=session_of(request), path=request.url.path, **values)
    return Response(text.encode("utf-8", "backslashreplace"), status, HEADERS, media_type="text/html; charset=utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "at": at,
        "count": lambda number: f"{number:,}",
        "ms": milliseconds,
        "span": lambda length: milliseconds(length.total_seconds() * 1000),
        "pretty": highlighting.pretty,
        "visible": visible,
        "sign": messages.sign,
        "spaced": messages.spaced,
        "percent": percent,
        "short_id": lambda job_id: f"…{str(job_id)[-12:]}",
        "px": lambda number: f"{number:.1f}",
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    environment.globals |= {"asset": asset_url, "excerpt": highlighting.excerpt, "LONG": LONG}
    return environment


def at(moment: datetime) -> Markup:
    exact = moment.isoformat().replace("+00:00", "Z")
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M:%S}</time>').format(exact, moment)


def percent(share: float | None) -> str:
    """A share from 0 to 1. Only exactly nothing and exactly everything look so."""
    if share is None:
        return "–"
    text = f"{share * 100:.1f}"
    if share not in (0.0, 1.0) and text in ("0.0", "100.0"):
        text = "<0.1" if share < 0.5 else ">99.9"
    return text.removesuffix(".0") + " %"


def milliseconds(number: float) -> str:
    if number < 1000:
        return f"{number:.0f} ms"
    if number < 60_000:
        return f"{number / 1000:.1f} s"
    minutes, seconds = divmod(round(number / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def visible(text: str) -> str:
    """The text with a symbol in place of each control character."""
    return _CONTROLS.sub(lambda found: chr(0x2421 if found[0] == "\x7f" else 0x2400 + ord(found[0])), text)
