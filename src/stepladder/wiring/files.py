"""Reads files named by the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

MAX_DOCUMENT_BYTES = 4_000_000


def read_text(path: Path, most: int = MAX_DOCUMENT_BYTES) -> str:
    """The text of a file. Raises ``BadInputError`` if it is missing, too large, or not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise BadInputError(message, remedy="give an existing file") from None
    if len(content) > most:
        raise BadInputError(f"{path} is larger than {most:,} bytes", remedy="give a smaller file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text: byte {error.start}", remedy="save it as UTF-8") from None
