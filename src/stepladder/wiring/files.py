"""Reading the files that people name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

MAX_DOCUMENT_BYTES = 4_000_000


def read_text(path: Path, most: int = MAX_DOCUMENT_BYTES) -> str:
    """A text file. Raises ``BadInputError`` for one that is missing, too large, or no UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise BadInputError(message, remedy="name a file that is there") from None
    if len(content) > most:
        raise BadInputError(f"{path} is larger than {most:,} bytes", remedy="name a smaller file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is no UTF-8 text: byte {error.start}", remedy="save it as UTF-8") from None
