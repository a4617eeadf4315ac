"""The folders of the embedded servers: their data, their logs and the model file."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from stepladder.schemas.errors import UnreachableError


def default_home() -> Path:
    """Where the data lie when ``STEPLADDER_HOME`` says nothing: the platform's folder for a user's data."""
    return Path(platformdirs.user_data_dir("stepladder"))


def default_cache() -> Path:
    """Where the model file lies: the platform's folder for what can be fetched again."""
    return Path(platformdirs.user_cache_dir("stepladder"))


def private_folder(path: Path) -> Path:
    """The absolute form of `path`, made if need be, for its owner's eyes alone.

    A folder that exists keeps its mode. Raises `UnreachableError` when it cannot be made or written to.
    """
    try:
        folder = path.expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise unwritable(path, error) from error
    return folder


def unwritable(path: Path, error: Exception) -> UnreachableError:
    """What to tell people when a folder of ours cannot be used."""
    return UnreachableError(
        f"The folder {path} cannot be used: {error}.",
        remedy=f"Give yourself write access to {path}, or choose another folder with --data or STEPLADDER_HOME.",
    )
