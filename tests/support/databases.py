"""A real PostgreSQL server for the tests of tenants."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import psycopg


def _postgres_programs() -> Path | None:
    """Debian keeps the server's programs off the path, by version."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent  # the path may hold a link to it alone
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: float(folder.parent.name), default=None)


class Postgres:
    """A real server in a folder of its own, reached by a socket in that folder and by nobody else."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="rmpg"))  # short: a socket's path has at most 107 bytes
        self.port = 5432  # only names the socket in the folder: the server listens on no network address
        self._as_owner: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "postgres")
            self._as_owner = ["runuser", "-u", "postgres", "--"]
        self.run("initdb", "-D", "data", "-U", "gate", "-A", "trust", "-N", "--locale=C.UTF-8")
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        command = [*self._as_owner, str(self.programs / program), *arguments]
        with tempfile.TemporaryFile() as output:  # not a pipe: the server would inherit and hold it
            done = subprocess.run(command, cwd=self.folder, stdout=output, stderr=output, timeout=120)
            output.seek(0)
            assert done.returncode == 0, output.read().decode()

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=50"
        self.run("pg_ctl", "-D", "data", "-w", "-t", "100", "-l", "log", "-o", settings, "start")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self) -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def database(self) -> str:
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def address(self, name: str) -> str:
        return f"postgresql://gate@/{name}?host={self.folder}&port={self.port}"


def start_postgres() -> Postgres | None:
    """Start a server; nothing where PostgreSQL is not installed."""
    programs = _postgres_programs()
    return None if programs is None else Postgres(programs)
