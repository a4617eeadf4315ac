"""Search for a text in answers and errors: each page reads a bounded number of jobs, and says how far it got."""

from __future__ import annotations

import json
import re

from stepladder.models.rows import plain

LOOKED_AT = 2000
"""Jobs whose answers are read for one page of a search. Without ``pg_trgm``, which few servers have, there is no index;
so the cost of a page is bounded, and its cursor continues where it stopped."""

CHUNK = 250
LONGEST = 200

# ``encode`` spells bytes beyond ASCII, so that whatever an answer holds can be looked through. A reason ends at the
# first bare quote.
MATCHES = """(
    encode(attempts.content, 'escape') ILIKE %(search_content)s
    OR attempts.errors::text ~* %(search_reason)s
    OR attempts.lost_detail::text ILIKE %(search_json)s
)"""
DETAIL_MATCHES = "failure_detail ILIKE %(search_detail)s"


def patterns(text: str) -> dict[str, str]:
    """The parameters of ``MATCHES`` and ``DETAIL_MATCHES``."""
    spelled = json.dumps(text, ensure_ascii=False)[1:-1]
    safe = plain(spelled) or ""
    return {
        "search_content": _like(_escaped(text)),
        "search_json": _like(safe),
        "search_reason": r'"reason": *"([^"\\]|\\.)*' + re.sub(r"([^0-9A-Za-z\s\u0080-\U0010ffff])", r"\\\1", safe),
        "search_detail": _like(plain(text) or ""),
    }


def _escaped(text: str) -> str:
    """As PostgreSQL's ``encode(..., 'escape')`` spells the text's bytes."""
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


def _like(text: str) -> str:
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"
