"""A search over a handful of notes."""

from __future__ import annotations

import stepladder

NOTES = (
    "Basalt is a dark rock of cooled lava.",
    "Granite cools slowly, deep in the ground, and has large crystals.",
    "Obsidian cools so fast that no crystals form.",
    "Marble was limestone before heat and pressure.",
)


@stepladder.tool("search_notes", effect="read")
def search_notes(query: str) -> dict[str, str | list[str]]:
    """Find the notes that contain a word."""
    found = [note for note in NOTES if query.lower() in note.lower()]
    return {"query": query, "notes": found}
