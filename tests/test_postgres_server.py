"""The Postgres server of tests is for them alone, and ends with them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.postgres_server import VERSION, PostgresServer

pytestmark = pytest.mark.postgres
ROOT = Path(__file__).parents[1]
OWNER = """
import time
from tests.postgres_server import PostgresServer
with PostgresServer() as server:
    print(server.pid, server.folder, flush=True)
    time.sleep(600)
"""


def test_each_database_is_empty_and_dropped_at_the_end(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as first, postgres_server.database() as second:
        with psycopg.connect(first) as connection:
            connection.execute("create table t ()")
            assert f"{connection.info.server_version // 10_000}." == VERSION[:3]
        with psycopg.connect(second) as connection:
            assert connection.execute("select to_regclass('t')").fetchone() == (None,)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first)


def test_the_server_asks_for_its_password(postgres_server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(make_conninfo(postgres_server.dsn(), password="other"))


def test_the_server_is_no_process_of_root(postgres_server: PostgresServer) -> None:
    assert psutil.Process(postgres_server.pid).uids().effective != 0


def test_a_server_whose_owner_is_killed_ends() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    pid, folder = owner.stdout.readline().decode().split()
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 60
    while psutil.pid_exists(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(int(pid))
    subprocess.run(["rm", "-r", folder], check=True)
