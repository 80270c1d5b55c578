"""Writes a lake, the Kafka clusters it was loaded from, and a Dagster home: what an installation leaves on disk.

    python -m tests.golden.write_lake FOLDER

It takes ten minutes on an idle machine and writes two files next to this one: `lake_<version>.tar.xz`, and
`lake_<version>.json` with what that version reports about the tables. The files of version 0.1.0 were written at
commit a33d8de, and the files of version 0.6.0 at b2d32d69. Later versions must load, verify and continue these tables,
as tests/pipelines/test_stored_lake.py checks. Before a change of the table format or of names in Dagster, run this
script with the last version before the change, and add its files to the older ones.

Only the command line, Delta and Dagster are used, so the script runs with any version. Dagster stores FOLDER and the
folder of the code: use neutral ones, such as /srv/lake and /srv/penstock.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import dagster as dg
import pyarrow as pa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deltalake import DeltaTable
from kazoo.client import KazooClient

WORKSPACE = Path(__file__).parents[2] / "workspace.yaml"
PORTS = {"zookeeper": 12181, "v09": 19092, "modern": 19093}
SETTINGS = """\
lake = "lake"
cron = "{cron}"
watch_cron = "{cron}"
verify_cron = "{cron}"

[clusters.old]
zookeeper = "127.0.0.1:12181"

[clusters.middle]
zookeeper = "127.0.0.1:12181/middle"
generation = "0.8-0.9"

[clusters.new]
bootstrap = "127.0.0.1:19093"
"""
EVERY_MINUTE, DAILY = "* * * * *", "11 4 * * *"
DAGSTER = """\
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 2
"""
SEGMENTS = {".kafka", ".log"}
BROKERS_OF_07 = (0, 1)
FIRST_DAY = datetime(2026, 1, 30, 12, tzinfo=UTC)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHOWN = ("version", "kind", "operation", "rows")
"""The fields of each commit that `expected` keeps."""
TABLES = (
    ("old", "clicks"),
    ("old", "Views"),
    ("middle", "clicks"),
    ("new", "orders"),
    ("new", "payments"),
    ("new", "carts"),
    ("new", "stocks"),
)


@dataclass(slots=True)
class Installation:
    """Servers with their data in `home`, the settings file, and the commands that a user runs on them."""

    home: Path
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    published: int = 0

    def penstock(self, *arguments: str, cluster: str | None = None, stdin: bytes = b"", failing: bool = False) -> str:
        """The output of a command. Its exit code must be 0, or another if it is `failing`."""
        chosen = [] if cluster is None else ["--cluster", cluster]
        command = [*_penstock(self.home), *arguments, *chosen]
        result = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=False)
        click.echo(f"penstock {' '.join((*arguments, *chosen))} -> {result.returncode}")
        assert bool(result.returncode) == failing, result.stdout.decode()
        return result.stdout.decode()

    def start(self, *names: str) -> None:
        """Start servers, and wait until each prints that it is ready."""
        for name in names:
            command = [*_penstock(self.home), *self.options_of(name), "--data-dir", str(self.home / name)]
            self.servers[name] = subprocess.Popen(command, stdout=subprocess.PIPE)
            output = self.servers[name].stdout
            assert output is not None
            assert output.readline()

    def stop(self, *names: str) -> None:
        """Stop servers one after the other, so that all their data is on disk."""
        for name in names:
            server = self.servers.pop(name)
            server.terminate()
            server.wait()

    def options_of(self, name: str) -> list[str]:
        """The arguments of `penstock` that start a server."""
        zookeeper = f"127.0.0.1:{PORTS['zookeeper']}"
        if name == "zookeeper":
            return ["zookeeper", "--port", str(PORTS["zookeeper"])]
        if name == "broker-v09":
            options = ["--port", str(PORTS["v09"]), "--generation", "0.8-0.9", "--zookeeper", f"{zookeeper}/middle"]
            return ["broker", "--broker-id", "9", "--partitions", "2", *options]
        if name == "broker-modern":
            options = ["--port", str(PORTS["modern"]), "--generation", "modern"]
            return ["broker", "--broker-id", "4", "--partitions", "2", *options]
        number = name.removeprefix("broker-")
        return ["broker", "--broker-id", number, "--port", "0", "--partitions", "2", "--zookeeper", zookeeper]

    def publish(self, cluster: str, topic: str, count: int, *, codec: str = "none", batch: int = 5) -> None:
        """Publish numbered lines. A broker of 0.7 shows them after its next flush."""
        first, self.published = self.published, self.published + count
        lines = b"".join(b'{"number": %d}\n' % number for number in range(first, first + count))
        self.penstock("publish", topic, "-", "--codec", codec, "--batch", str(batch), cluster=cluster, stdin=lines)
        time.sleep(1)

    def produce(self, topic: str, count: int, *, day: int, codec: str = "none", transaction: str | None = None) -> None:
        """Produce records with keys, headers and timestamps to both partitions.

        `transaction` is the end of a transaction around them, "commit" or "abort"; if it is None, there is none.
        """
        options = {"bootstrap.servers": f"127.0.0.1:{PORTS['modern']}", "compression.type": codec, "linger.ms": 5}
        producer = Producer({**options, **({"transactional.id": "writer"} if transaction else {})})
        if transaction:
            producer.init_transactions()
            producer.begin_transaction()
        start = FIRST_DAY + timedelta(days=day)
        for _ in range(count):
            number, self.published = self.published, self.published + 1
            value = None if number % 10 == 9 else b'{"number": %d}' % number
            timestamp_ms = int((start + timedelta(seconds=number)).timestamp() * 1000)
            headers: list[tuple[str, str | bytes | None]] = (
                [("trace", b"%d" % number), ("empty", None)] if number % 3 == 0 else []
            )
            producer.produce(
                topic, value, b"key-%d" % (number % 7), number % 2, timestamp=timestamp_ms, headers=headers
            )
        producer.flush()
        if transaction == "commit":
            producer.commit_transaction()
        elif transaction == "abort":
            producer.abort_transaction()

    def administer(self, request: Callable[[AdminClient], dict[Any, Any]]) -> None:
        """Ask the modern cluster for a change, and wait for it."""
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{PORTS['modern']}"})
        for future in request(admin).values():
            future.result(30)

    def table(self, cluster: str, topic: str) -> DeltaTable:
        """A table of the lake."""
        return DeltaTable(str(self.home / "lake" / cluster / _folder(topic)))

    def ends(self, topic: str, *brokers: str) -> dict[Path, int]:
        """The last segment file of each log of a topic, and its size now."""
        folders = [folder for broker in brokers for folder in self.home.glob(f"{broker}/{topic}-[0-9]")]
        last = [max(path for path in folder.iterdir() if path.suffix in SEGMENTS) for folder in folders]
        return {path: path.stat().st_size for path in last}


def _penstock(home: Path) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "pipelines", "--settings", str(home / "penstock.toml")]


def _folder(topic: str) -> str:
    return "".join(letter if letter.islower() else f"~{ord(letter):x}" for letter in topic)


def load_old_topic_with_every_kind_of_commit(installation: Installation) -> None:
    """Loads, a backfill, a replay, a rewind, and a gap of records that expired."""
    brokers = [f"broker-{number}" for number in BROKERS_OF_07]
    cuts = []
    for codec in ("gzip", "snappy", "none"):
        installation.publish("old", "clicks", 100, codec=codec)
        cuts.append(installation.ends("clicks", *brokers))
    _split(installation, brokers, cuts[:-1])
    installation.penstock("load", "clicks", "--from", "-1h", cluster="old")
    installation.penstock("load", "clicks", "--from", "earliest", cluster="old")
    installation.publish("old", "clicks", 50, codec="gzip")
    installation.penstock("load", "clicks", cluster="old")
    table = installation.table("old", "clicks")
    table.delete('broker = 1 AND partition = 0 AND "offset" < 1000')
    installation.penstock("verify", "clicks", cluster="old", failing=True)
    installation.penstock("replay", "clicks", "--from", "earliest", "--to", "latest", cluster="old")
    installation.publish("old", "clicks", 50)
    installation.penstock("load", "clicks", cluster="old")
    newest = installation.table("old", "clicks").version()
    installation.penstock("rewind", "clicks", "--version", str(newest - 1), "--yes", cluster="old")
    installation.penstock("load", "clicks", cluster="old")
    installation.publish("old", "clicks", 60, codec="snappy")
    ends = installation.ends("clicks", *brokers)
    installation.publish("old", "clicks", 60)
    _split(installation, brokers, [ends], expire=True)
    installation.penstock("load", "clicks", cluster="old", failing=True)
    installation.penstock("load", "clicks", "--on-expired", "skip", cluster="old")


def _split(
    installation: Installation, brokers: Sequence[str], cuts: Sequence[dict[Path, int]], *, expire: bool = False
) -> None:
    """Split segment files at sizes that they had before, as if the broker had rolled them then.

    All parts but the last get a modification time some hours ago. With `expire` only the last part is kept.
    """
    installation.stop(*brokers)
    for path in {path for sizes in cuts for path in sizes}:
        data, start = path.read_bytes(), int(path.stem)
        starts = sorted({0, *(sizes[path] for sizes in cuts if path in sizes)})
        path.unlink()
        for number, (begin, end) in enumerate(zip(starts, [*starts[1:], len(data)], strict=True)):
            part = path.with_name(f"{start + begin:020d}{path.suffix}")
            part.write_bytes(data[begin:end])
            if end < len(data):
                ago = time.time() - 3600 * (len(starts) - number)
                os.utime(part, (ago, ago))
        if expire:
            for part in sorted(path.parent.glob(f"*{path.suffix}"))[:-1]:
                part.unlink()
    installation.start(*brokers)


def load_truncated_topic(installation: Installation, cluster: str, topic: str, brokers: Sequence[str]) -> None:
    """Two loads; then the brokers lose the end of their logs, and a choice removes these rows from the table."""
    installation.publish(cluster, topic, 100, codec="gzip")
    installation.penstock("load", topic, cluster=cluster)
    sizes = installation.ends(topic, *brokers)
    installation.publish(cluster, topic, 100)
    installation.penstock("load", topic, cluster=cluster)
    installation.stop(*brokers)
    for path, size in sizes.items():
        os.truncate(path, size)
    installation.start(*brokers)
    installation.penstock("load", topic, cluster=cluster, failing=True)
    installation.penstock("load", topic, "--on-truncated", "rewind", cluster=cluster)
    installation.publish(cluster, topic, 60)
    installation.penstock("load", topic, cluster=cluster)


def load_orders(installation: Installation) -> None:
    """Records with keys, headers, timestamps and null values in every codec; the commits are of the kinds of 0.7."""
    for day, codec in enumerate(CODECS):
        installation.produce("orders", 60, day=day, codec=codec)
    since = (FIRST_DAY + timedelta(days=3)).isoformat()
    installation.penstock("load", "orders", "--from", since, cluster="new")
    installation.penstock("load", "orders", "--from", "earliest", cluster="new")
    installation.table("new", "orders").delete('partition = 1 AND "offset" IN (3, 4, 60)')
    installation.penstock("verify", "orders", cluster="new", failing=True)
    installation.penstock("replay", "orders", "--from", "earliest", "--to", "latest", cluster="new")
    installation.produce("orders", 40, day=5, codec="zstd")
    installation.penstock("load", "orders", cluster="new")
    newest = installation.table("new", "orders").version()
    installation.penstock("rewind", "orders", "--version", str(newest - 1), "--yes", cluster="new")
    installation.penstock("load", "orders", cluster="new")
    installation.produce("orders", 20, day=6)
    installation.administer(lambda admin: admin.delete_records([TopicPartition("orders", 0, 175)]))
    installation.penstock("load", "orders", cluster="new", failing=True)
    installation.penstock("load", "orders", "--on-expired", "skip", cluster="new")


def load_transactions(installation: Installation) -> None:
    """Committed and aborted transactions: the markers and the aborted records are gaps."""
    for end in ("commit", "abort", "commit"):
        installation.produce("payments", 20, day=0, transaction=end)
    installation.penstock("load", "payments", cluster="new")
    for end in ("abort", "commit"):
        installation.produce("payments", 20, day=1, transaction=end)
    installation.penstock("load", "payments", cluster="new")


def load_recreated_topic(installation: Installation) -> None:
    """A topic that was deleted and created again, with the records of both in one table."""
    installation.produce("carts", 30, day=0)
    installation.penstock("load", "carts", cluster="new")
    installation.administer(lambda admin: admin.delete_topics(["carts"]))
    installation.administer(lambda admin: admin.create_topics([NewTopic("carts", 2, 1)]))
    installation.produce("carts", 50, day=1)
    installation.penstock("load", "carts", cluster="new", failing=True)
    installation.penstock("load", "carts", "--on-recreated", "restart", cluster="new")


def compact(installation: Installation) -> None:
    """Merge the files of a table, delete the files that are no longer needed, write a checkpoint, and load more."""
    installation.penstock("clean", "Views", "--delete", "--keep-days", "0.000001", cluster="old")
    installation.publish("old", "Views", 60)
    installation.penstock("load", "Views", cluster="old")


def load_middle(installation: Installation) -> None:
    """Message sets of 0.8, plain and compressed."""
    for codec in ("none", "gzip", "snappy"):
        installation.publish("middle", "clicks", 50, codec=codec)
        installation.penstock("load", "clicks", cluster="middle")


def run_dagster(installation: Installation) -> None:
    """Sensors add topics as partitions; runs load, watch and verify; at the end two sensors have a new topic to add."""
    for cluster, topic in TABLES:
        if cluster == "new":
            installation.produce(topic, 10, day=7)
        else:
            installation.publish(cluster, topic, 20)
    folder = installation.home / "dagster"
    folder.mkdir()
    (folder / "dagster.yaml").write_text(DAGSTER)
    settings = installation.home / "penstock.toml"
    settings.write_text(SETTINGS.format(cron=EVERY_MINUTE))
    with _daemon(installation), dg.DagsterInstance.from_config(str(folder)) as instance:
        _wait(lambda: _succeeded(instance) >= 9)
        settings.write_text(SETTINGS.format(cron=DAILY))
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        _cancel_waiting(instance)
    with _daemon(installation), dg.DagsterInstance.from_config(str(folder)) as instance:
        _wait(lambda: not _unfinished(instance))
        installation.produce("late", 10, day=8)
        installation.publish("old", "late", 20)
        _wait(lambda: _noted(instance) == 2)


def _succeeded(instance: dg.DagsterInstance) -> int:
    """The number of jobs that have a successful run."""
    runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))
    return len({run.job_name for run in runs})


def _unfinished(instance: dg.DagsterInstance) -> bool:
    return any(not run.is_finished for run in instance.get_runs())


def _cancel_waiting(instance: dg.DagsterInstance) -> None:
    """Cancel the runs that had no process yet when the daemon ended: a new daemon does not start all of them."""
    for run in instance.get_runs():
        if run.status in {dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING}:
            instance.report_run_canceled(run, message="the daemon was stopped")


def _noted(instance: dg.DagsterInstance) -> int:
    """The number of sensors that have the new topic in their cursor."""
    states = instance.all_instigator_state()
    cursors = [getattr(state.instigator_data, "cursor", None) or "" for state in states]
    return sum('"late"' in cursor for cursor in cursors)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)


@contextmanager
def _daemon(installation: Installation) -> Iterator[None]:
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(installation.home / "dagster"),
        "PENSTOCK_SETTINGS": str(installation.home / "penstock.toml"),
    }
    command = [sys.executable, "-W", "ignore", "-m", "dagster._daemon", "run", "-w", str(WORKSPACE)]
    with (installation.home / "daemon.out").open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _results(output: str) -> list[Any]:
    """The results in the JSON that a command printed. Versions up to 0.6 printed the list alone."""
    decoded = json.loads(output)
    return list(decoded["results"] if isinstance(decoded, dict) else decoded)


def expected(installation: Installation) -> dict[str, Any]:
    """What the version that wrote the lake reports about its tables, and the rows that any reader of Delta sees."""
    tables = {}
    for cluster, topic in TABLES:
        [proof] = _results(installation.penstock("verify", topic, "--deep", "--json", cluster=cluster))
        assert proof["proven"]
        past = _results(installation.penstock("history", topic, "--json", "--limit", "100", cluster=cluster))
        table = installation.table(cluster, topic).to_pyarrow_table()
        tables[f"{cluster}/{topic}"] = {
            "rows": table.num_rows,
            "digest": digest(table),
            "history": [{name: commit.get(name) for name in SHOWN} for commit in past],
            "covered": next(commit["covered"] for commit in past if commit["kind"]),
            "gaps": gaps_of(proof),
        }
    return tables


def digest(table: pa.Table) -> str:
    """A hash of all rows that does not depend on their order or on the time at which they were loaded."""
    times = table.schema.get_field_index("timestamp")
    numbers = table.set_column(
        times, "timestamp", table["timestamp"].cast(pa.int64())
    )  # Python prints timestamps differently
    rows = numbers.drop_columns(["date", "loaded_at"]).to_pylist()
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()


def gaps_of(proof: dict[str, Any]) -> dict[str, int]:
    """The number of offsets without a row, by cause, over all partitions in the output of `penstock verify --json`."""
    gaps = sum((Counter(partition["gaps"]) for partition in proof["partitions"]), Counter[str]())
    return dict(sorted(gaps.items()))


def shrink(home: Path) -> None:
    """Remove what a later version does not need: logs, locks, and the free pages of databases."""
    for path in [*home.rglob("*.out"), *home.rglob(".lock"), *home.rglob("*.cfg"), *home.glob("zookeeper/*.log")]:
        path.unlink()
    for folder in ("storage", "logs", ".telemetry", ".nux"):
        shutil.rmtree(home / "dagster" / folder, ignore_errors=True)
    for file in home.rglob("*.db"):
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("VACUUM")
        database.close()
    *older, _ = sorted(home.glob("zookeeper/version-2/snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    for file in [*older, *home.glob("zookeeper/version-2/log.*")]:
        file.unlink()


def write(folder: Path) -> None:
    """Write everything in `folder`, which must not exist."""
    folder.mkdir(parents=True)
    (folder / "penstock.toml").write_text(SETTINGS.format(cron=DAILY))
    installation = Installation(folder)
    servers = [*(f"broker-{number}" for number in BROKERS_OF_07), "broker-v09", "broker-modern"]
    with ExitStack() as stopping:
        stopping.callback(lambda: installation.stop(*reversed(installation.servers)))
        installation.start("zookeeper")
        client = KazooClient(f"127.0.0.1:{PORTS['zookeeper']}")
        client.start()
        client.create("/middle")
        client.stop()
        installation.start(*servers)
        load_old_topic_with_every_kind_of_commit(installation)
        load_truncated_topic(installation, "old", "Views", servers[:2])
        compact(installation)
        load_middle(installation)
        load_orders(installation)
        load_transactions(installation)
        load_recreated_topic(installation)
        load_truncated_topic(installation, "new", "stocks", servers[3:])
        run_dagster(installation)
        summary = expected(installation)
    installation.start("zookeeper")  # at its start it writes all its data into one new snapshot
    installation.stop("zookeeper")
    shrink(folder)
    result = Path(__file__).with_name(f"lake_{version('penstock')}")
    result.with_name(f"{result.name}.json").write_text(json.dumps(summary, indent=1) + "\n")
    with tarfile.open(f"{result}.tar.xz", "w:xz") as packed:
        packed.add(folder, arcname=".", filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member of the archive without its owner."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    write(Path(sys.argv[1]).absolute())
