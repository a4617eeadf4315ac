"""Six tools of a help desk, on small tables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

import stepladder

User = Annotated[str, Field(pattern="^[a-z]{2,20}$")]
Text = Annotated[str, Field(min_length=1, max_length=200)]

USERS = {"kim": {"team": "maps", "device": "L-17"}, "ada": {"team": "search", "device": "L-20"}}
DEVICES: dict[str, dict[str, str | int]] = {
    "L-17": {"model": "laptop", "disk_free_percent": 2},
    "L-20": {"model": "laptop", "disk_free_percent": 60},
}
ARTICLES = ("A full disk makes builds fail: empty the cache folder.", "VPN drops: restart the vpn service.")
NOTES: dict[str, dict[str, str]] = {}


@stepladder.tool("search_kb", effect="read")
def search_kb(query: Text) -> dict[str, list[str]]:
    """Search the articles for a word."""
    return {"articles": [text for text in ARTICLES if query.lower() in text.lower()]}


@stepladder.tool("get_user", effect="read", permissions=["users:read"])
def get_user(user: User) -> dict[str, str]:
    """Find a user's team and device. An unknown user is a `LookupError`."""
    if user not in USERS:
        raise LookupError(f"there is no user {user}")
    return USERS[user]


@stepladder.tool("get_device", effect="read", permissions=["devices:read"])
def get_device(device: Annotated[str, Field(pattern="^L-[0-9]{2}$")]) -> dict[str, str | int]:
    """Find a device's state. An unknown device is a `LookupError`."""
    if device not in DEVICES:
        raise LookupError(f"there is no device {device}")
    return dict(DEVICES[device])


@stepladder.tool("list_tickets", effect="read", permissions=["tickets:read"])
def list_tickets(user: User, state: Literal["open", "closed"] = "open") -> dict[str, list[str]]:
    """List a user's tickets."""
    return {"tickets": [f"{user}: the build fails"] if state == "open" else []}


@stepladder.tool("add_note", effect="idempotent", permissions=["tickets:write"])
def add_note(user: User, text: Text, idempotency_key: str) -> dict[str, int]:
    """Write a note. The same key again writes no second note."""
    notes = NOTES.setdefault(user, {})
    notes[idempotency_key] = text
    return {"notes": len(notes)}


@stepladder.tool("restart_service", effect="idempotent", permissions=["services:restart"])
def restart_service(service: Literal["vpn", "mail", "build"]) -> dict[str, str]:
    """Restart a service. Restarting it twice does no harm."""
    return {"service": service, "state": "running"}
