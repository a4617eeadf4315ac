"""Settings: a flag over the environment, the environment over the file; and secrets that are never shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration file here, and no variable of ours."""
    for name in [name for name in os.environ if name.startswith("STEPLADDER_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_needs_to_be_set() -> None:
    settings = load_settings()
    assert (settings.database_url, settings.engine_url, settings.model, settings.app) == (None, None, None, None)
    assert settings.home.name == "stepladder"


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_folder / "stepladder.toml").write_text('model = "file"\napp = "file"\nengine_url = "http://file/v1"\n')
    monkeypatch.setenv("STEPLADDER_MODEL", "environment")
    monkeypatch.setenv("STEPLADDER_APP", "environment")
    settings = load_settings(model="flag", app=None)
    assert (settings.model, settings.app, settings.engine_url) == ("flag", "environment", "http://file/v1")


def test_an_empty_variable_is_one_that_is_not_set(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "stepladder.toml").write_text('model = "file"\n')
    for name in ("MODEL", "DATABASE_URL", "LOG_LEVEL", "BROKER_URL", "API_KEYS", "PORT"):
        monkeypatch.setenv(f"STEPLADDER_{name}", "")
    settings = load_settings()
    assert (settings.model, settings.database_url, settings.log_level) == ("file", None, None)


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_ENGINE_API_KEY", "sk-1234")
    monkeypatch.setenv("STEPLADDER_DATABASE_URL", "postgresql://me:sesame@db/x")
    monkeypatch.setenv("STEPLADDER_BROKER_URL", "redis://:sesame@broker/0")
    monkeypatch.setenv("STEPLADDER_API_KEYS", '[{"name": "ci", "key": "sesame", "scopes": []}]')
    settings = load_settings()
    for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.model_dump()}"):
        assert "sk-1234" not in shown
        assert "sesame" not in shown
    assert settings.engine_api_key is not None
    assert settings.engine_api_key.get_secret_value() == "sk-1234"


@pytest.mark.parametrize(("name", "value"), [("LOG_LEVEL", "loud"), ("LOG_LEVEL", "INFO")])
def test_a_value_that_cannot_be_used_is_named_with_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"STEPLADDER_{name}", value)
    with pytest.raises(BadInputError, match=f"STEPLADDER_{name}") as refused:
        load_settings()
    assert "'debug'" in str(refused.value)


def test_a_bad_secret_is_not_repeated(empty_folder: Path) -> None:
    (empty_folder / "stepladder.toml").write_text("engine_api_key = [4711]\n")
    with pytest.raises(BadInputError, match="STEPLADDER_ENGINE_API_KEY") as refused:
        load_settings()
    assert "4711" not in str(refused.value) + refused.value.remedy


@pytest.mark.parametrize("text", ["model = ", "model = 'a'\nmodel = 'b'\n"])
def test_a_file_that_cannot_be_read_is_named(empty_folder: Path, text: str) -> None:
    (empty_folder / "stepladder.toml").write_text(text)
    with pytest.raises(BadInputError, match=r"stepladder\.toml cannot be read"):
        load_settings()


def test_the_api_listens_on_loopback_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().host, load_settings().port) == ("127.0.0.1", 8700)
    monkeypatch.setenv("STEPLADDER_PORT", "tcp://10.0.0.1:8700")  # as Kubernetes sets it by itself
    assert load_settings().port == 8700
    monkeypatch.setenv("STEPLADDER_PORT", "65536")
    with pytest.raises(BadInputError, match="STEPLADDER_PORT"):
        load_settings()
    assert load_settings(port=0).port == 0
