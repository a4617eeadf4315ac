"""Templates and static files, and how values are written in them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from stepladder.dashboard import marks, words
from stepladder.dashboard.desk import guest_of

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from starlette.requests import Request

HERE = Path(__file__).parent
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

# ``same-origin``: under ``no-referrer`` a browser writes `Origin: null` above its forms, which the guard refuses.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONG = 600
"""Characters from which on an answer is folded, about ten lines."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file. Its URL has a hash of what is in it, so that a browser may keep it for good."""

    url: str
    body: bytes
    media_type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """By the last part of the URL."""
    found = {}
    for path in sorted((HERE / "static").iterdir()):
        if path.suffix in TYPES:
            body = path.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:16]
            name = f"{path.stem}.{digest}{path.suffix}"
            found[name] = Asset(f"/static/{name}", body, TYPES[path.suffix], f'"{digest}"')
    return found


def asset_url(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return next(asset.url for key, asset in assets().items() if key.startswith(f"{stem}.") and key.endswith(suffix))


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A page, or a part of one. Half a character, which UTF-8 has not, is written as its escape."""
    text = _environment().get_template(template).render(guest=guest_of(request), path=request.url.path, **values)
    body = text.encode("utf-8", "backslashreplace")
    return Response(body, status, HEADERS, media_type="text/html; charset=utf-8")


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
        "span": span,
        "pretty": marks.pretty,
        "visible": visible,
        "mark": words.mark,
        "plain_word": words.plain,
        "percent": percent,
        "short_id": lambda job_id: str(job_id)[-12:],
    }
    environment.globals |= {"asset": asset_url, "excerpt": marks.excerpt, "LONG": LONG}
    return environment


def at(moment: datetime) -> Markup:
    exact = moment.isoformat().replace("+00:00", "Z")
    shown = f"{moment:%Y-%m-%d %H:%M:%S}"
    return Markup('<time datetime="{}">{}</time>').format(exact, shown)


def percent(share: float | None) -> str:
    """Of a share from 0 to 1. What is not all or nothing is never shown as such."""
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


def span(length: timedelta) -> str:
    return milliseconds(length.total_seconds() * 1000)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def visible(text: str) -> str:
    """With signs in the place of control characters, which a page cannot show."""
    return _CONTROLS.sub(lambda found: chr(0x2421 if found[0] == "\x7f" else 0x2400 + ord(found[0])), text)
