"""Real stores that run on this machine, behind one interface: where a lake is, and with which options it is opened.

Each store is a process of its own, because deltalake's file system holds Python's lock while it waits for an answer.
"""

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import IO

from resources.machines.java import find_java
from resources.machines.processes import dying_with_parent
from tests.brokers.ports import free_ports
from tests.stores import programs

BUCKET = "bucket"
_START_S = 280.0
_POLL_S = 0.1
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that Azurite has, and its documentation prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreServer:
    """A running store.

    Args:
        name: its name in the table of docs/object-stores.md.
        root: the URI of its bucket, container or folder.
        port: the port of its HTTP interface; None if it has another interface.
        options: the options of a lake in it.
        endpoint: the option with the URL of the interface.
        secret: the option with the secret; empty if the store needs none.
        wrong: the value of that option with which the store refuses requests.
    """

    name: str
    root: str
    port: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    endpoint: str = ""
    secret: str = ""
    wrong: str = ""

    def at(self, port: int) -> Mapping[str, str]:
        """The options of a lake whose requests go to another port of this machine."""
        url = self.options[self.endpoint].replace(f":{self.port}", f":{port}")
        return {**self.options, self.endpoint: url}


def _s3(name: str, port: int, key: str, secret: str) -> StoreServer:
    return StoreServer(
        name=name,
        root=f"s3://{BUCKET}",
        port=port,
        options={
            "aws_endpoint_url": f"http://127.0.0.1:{port}",
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": key,
            "aws_secret_access_key": secret,
            "aws_conditional_put": "etag",
        },
        endpoint="aws_endpoint_url",
        secret="aws_secret_access_key",
        wrong="wrong",
    )


@contextmanager
def moto(folder: Path) -> Iterator[StoreServer]:
    """S3 of moto. It stores objects in memory."""
    script = Path(__file__).with_name("moto_server.py")
    with _running([sys.executable, str(script), BUCKET], folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port, key, secret = process.stdout.readline().split()
        yield _s3("moto", int(port), key.decode(), secret.decode())


@contextmanager
def versitygw(folder: Path) -> Iterator[StoreServer]:
    """The S3 gateway of Versity in front of a folder. It publishes objects with hard links."""
    key, secret = "penstock", "a-secret-of-tests"
    for name in (f"objects/{BUCKET}", "metadata"):
        (folder / name).mkdir(parents=True)
    [port] = free_ports(1)
    command = [str(programs.versitygw()), "--port", f"127.0.0.1:{port}", "--quiet", "posix"]
    arguments = ["--sidecar", str(folder / "metadata"), str(folder / "objects")]
    with _running([*command, *arguments], folder, ROOT_ACCESS_KEY=key, ROOT_SECRET_KEY=secret) as process:
        _wait_for_port(port, process)
        yield _s3("versitygw", port, key, secret)


@contextmanager
def azurite(folder: Path) -> Iterator[StoreServer]:
    """Microsoft's emulator of Azure Blob Storage, in memory. It needs the filter of the proxy (see proxy.py)."""
    [port] = free_ports(1)
    options = ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    command = ["node", str(programs.azurite()), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with _running(command, folder) as process:
        _wait_for_port(port, process)
        _create_container(port)
        yield StoreServer(
            name="Azurite",
            root=f"az://{BUCKET}",
            port=port,
            options={
                "azure_storage_account_name": _AZURE_ACCOUNT,
                "azure_storage_account_key": _AZURE_KEY,
                "azure_storage_endpoint": f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}",
                "azure_allow_http": "true",
            },
            endpoint="azure_storage_endpoint",
            secret="azure_storage_account_key",
            wrong=base64.b64encode(b"wrong" * 8).decode(),
        )


@contextmanager
def hdfs(folder: Path) -> Iterator[StoreServer]:
    """A NameNode and a DataNode in one JVM."""
    details = folder / "details.json"
    java = [str(find_java() / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    properties = [f"-Dtest.build.data={folder / 'data'}", "-cp", f"{programs.hadoop()}/*"]
    arguments = ["org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format"]
    command = [*java, *properties, *arguments, "-writeDetails", str(details)]
    with _running(command, folder) as process:
        _wait(lambda: details.exists() and bool(details.read_text()), process)
        yield StoreServer(name="HDFS", root=f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}")


STORES: Mapping[str, Callable[[Path], AbstractContextManager[StoreServer]]] = {
    "moto": moto,
    "versitygw": versitygw,
    "Azurite": azurite,
    "HDFS": hdfs,
}


@contextmanager
def _running(
    command: Sequence[str], folder: Path, *, stdout: int | IO[bytes] | None = None, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in `folder` for the length of a `with` block; its messages are in the file `server.log` there."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=stdout or log,
            stderr=log,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not condition():
        assert process.poll() is None, f"the server has ended with code {process.returncode}"
        assert time.monotonic() < deadline, "the server does not start"
        time.sleep(_POLL_S)


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    def answers() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
        except urllib.error.HTTPError as refusal:
            refusal.close()
        except OSError:
            return False
        return True

    _wait(answers, process)


def _create_container(port: int) -> None:
    """Create the container, with a request that is signed with the account's key."""
    path, version, date = f"/{_AZURE_ACCOUNT}/{BUCKET}", "2021-08-06", formatdate(usegmt=True)
    signed = f"PUT{12 * chr(10)}x-ms-date:{date}\nx-ms-version:{version}\n/{_AZURE_ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(_AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {_AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
        "Content-Type": "",
    }
    url = f"http://127.0.0.1:{port}{path}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, b"", headers, method="PUT"), timeout=10).close()


def missing(name: str) -> str | None:
    """The program without which this store cannot run, if it is missing on this machine."""
    needed = {"versitygw": "go", "Azurite": "npm"}.get(name)
    return needed if needed and shutil.which(needed) is None else None
