"""Import of offsets: the table begins exactly where the other loader ended, with no row twice and none missing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from kazoo.client import KazooClient

from kafka_io.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafka_io.model import BrokerPartition
from pipelines.cursors.import_offsets import OffsetsImport, import_offsets, plan_import
from resources.errors import CommitRefused, ImportRefused, TopicUnknown
from resources.settings.choices import Choices
from tests.kafka_io.testing.modern.talk import Client
from tests.live import LiveCluster, numbered
from tests.nodes import connected
from tests.pipelines.cursors.conftest import PARTITIONS, RECORDS_PER_PARTITION, Stand
from tests.pipelines.cursors.written import camus_file, etl_key, request_file
from tests.pipelines.loaded import Loaded, Row

pytestmark = pytest.mark.slow  # each test fills a table and changes it

P0, P1, P2 = (BrokerPartition(None, number) for number in range(PARTITIONS))
WHOLE = {P0: 0, P1: 0, P2: 0}
SPARK = Path(__file__).parents[2] / "golden" / "spark"
Imported = dict[BrokerPartition, int | None]


def numbers(topic: Loaded) -> list[int]:
    return sorted(json.loads(value)["number"] for (value,) in topic.rows("value"))


def left_over(starts: dict[int, int]) -> list[int]:
    """The numbers of the records from these offsets on. Ten records at a time went to each partition in turn."""
    positions = {
        number: (number // 10 % PARTITIONS, number // 30 * 10 + number % 10)
        for number in range(PARTITIONS * RECORDS_PER_PARTITION)
    }
    return [number for number, (partition, offset) in positions.items() if offset >= starts[partition]]


def planned(stand: Stand, imported: Imported, *, topic: str = "clicks", **options: object) -> OffsetsImport:
    with stand.topic.loader(**options) as loader:
        return plan_import(loader.run, stand.topic.table, topic, imported, source="group:old")


def test_a_load_continues_where_a_group_ended(stand: Stand) -> None:
    starts = {0: 7, 1: 0, 2: RECORDS_PER_PARTITION}
    stand.commit("old", starts)
    result = stand("offsets", "import", "clicks", "--from", "group:old")
    assert result.exit_code == 0, result.output
    assert {id_: stand.topic.covered(id_) for id_ in (P0, P1, P2)} == {P0: (7, 7), P1: (0, 0), P2: (30, 30)}
    assert (stand.topic.rows(), stand.topic.problems()) == ([], ())
    assert stand.topic.load().rows == len(left_over(starts))
    assert numbers(stand.topic) == left_over(starts)
    stand.publish(10, start=90)
    assert (stand.topic.load().rows, stand.topic.load().rows) == (10, 0)
    assert numbers(stand.topic) == [*left_over(starts), *range(90, 100)]
    assert stand.topic.problems() == ()
    assert stand.topic.deep().proven
    *_, first = json.loads(stand("history", "clicks", "--json").stdout)["results"][:-1]
    assert [(choice["setting"], choice["value"], choice["start"]) for choice in first["choices"]] == [
        ("adopted from", "group:old", offset) for offset in starts.values()
    ]


def wholly_loaded(live: LiveCluster) -> Loaded:
    """The same topic in another lake, loaded completely."""
    settings = live.home / "whole.toml"
    settings.write_text(live.settings.read_text().replace('lake = "lake"', 'lake = "whole"'))
    whole = Loaded(settings)
    whole.load()
    return whole


def rows_from(whole: Loaded, starts: dict[BrokerPartition, int]) -> list[Row]:
    """The rows from these offsets on."""
    rows = whole.rows("broker", "partition", "offset", "inner", "value")
    return [row for row in rows if row[2] >= starts[BrokerPartition(row[0], row[1])]]


@pytest.fixture
def middles(live: LiveCluster) -> tuple[Loaded, dict[BrokerPartition, int]]:
    """A completely loaded topic, and for each partition an offset where a message starts."""
    live.publish("clicks", numbered(600))
    whole = wholly_loaded(live)
    ids = [BrokerPartition(broker, partition) for broker in (0, 1) for partition in (0, 1)]
    return whole, {id_: whole.offsets(id_)[index] for index, id_ in enumerate(ids, 3)}


def store_offsets(client: KazooClient, group: str, starts: dict[BrokerPartition, int]) -> None:
    """Store offsets as a consumer of 0.7 does."""
    for id_, offset in starts.items():
        client.create(f"/consumers/{group}/offsets/clicks/{id_}", str(offset).encode(), makepath=True)


@pytest.mark.zookeeper
def test_a_load_continues_where_a_consumer_of_0_7_ended(
    live: LiveCluster, middles: tuple[Loaded, dict[BrokerPartition, int]], old: Callable[..., Result]
) -> None:
    whole, starts = middles
    with connected(live.zookeeper) as client:
        store_offsets(client, "old", starts)
    result = old("offsets", "import", "clicks", "--from", "zookeeper:old")
    assert result.exit_code == 0, result.output
    topic = Loaded(live.settings)
    assert topic.load().rows == len(rows_from(whole, starts)) > 300
    assert topic.rows("broker", "partition", "offset", "inner", "value") == rows_from(whole, starts)
    assert topic.problems() == ()
    assert topic.load().rows == 0
    *_, first, _made = json.loads(old("history", "clicks", "--json").stdout)["results"]
    assert {choice["value"] for choice in first["choices"]} == {"zookeeper:old"}


@pytest.mark.zookeeper
def test_a_load_continues_where_the_hadoop_consumer_ended(
    live: LiveCluster, middles: tuple[Loaded, dict[BrokerPartition, int]], old: Callable[..., Result]
) -> None:
    whole, starts = middles
    ports = {broker.config.broker_id: broker.port for broker in live.brokers}
    for index, (id_, offset) in enumerate(starts.items()):
        line = f"tcp://127.0.0.1:{ports[id_.holder]}\tclicks\t{id_.partition}\t{offset}"
        (live.home / f"offsets_00000{index}m0-m-00000").write_bytes(request_file(line))
    result = old("offsets", "import", "clicks", "--from", f"hadoop:{live.home}")
    assert result.exit_code == 0, result.output
    topic = Loaded(live.settings)
    topic.load()
    assert topic.rows("broker", "partition", "offset", "inner", "value") == rows_from(whole, starts)
    assert topic.problems() == ()


@pytest.mark.zookeeper
def test_an_offset_where_no_message_starts_is_refused(  # fault R26
    live: LiveCluster, middles: tuple[Loaded, dict[BrokerPartition, int]], old: Callable[..., Result]
) -> None:
    _, starts = middles
    with connected(live.zookeeper) as client:
        store_offsets(client, "old", {**starts, BrokerPartition(1, 0): starts[BrokerPartition(1, 0)] + 3})
    result = old("offsets", "import", "clicks", "--from", "zookeeper:old")
    assert result.exit_code == 1
    assert f"partition 1-0: no message starts at {starts[BrokerPartition(1, 0)] + 3} (" in result.stderr
    assert Loaded(live.settings).table.existing() is None


def test_a_load_continues_where_camus_and_spark_ended(stand: Stand) -> None:
    run = stand.home / "history" / "2014-03-01-10-00-00"
    run.mkdir(parents=True)
    (run / "offsets-m-00000").write_bytes(camus_file(*(etl_key("clicks", number, 4) for number in range(PARTITIONS))))
    shown = stand("offsets", "import", "clicks", "--from", f"camus:{run.parent}", "--dry-run", "--json")
    assert [start["start"] for start in json.loads(shown.stdout)["results"][0]["partitions"]] == [4, 4, 4]
    shutil.copytree(SPARK, stand.home / "checkpoint")
    (stand.home / "checkpoint" / "offsets" / "2").write_text('v1\n{}\n{"clicks":{"0":1,"1":2,"2":3}}\n')
    assert stand("offsets", "import", "clicks", "--from", f"spark:{stand.home / 'checkpoint'}").exit_code == 0
    stand.topic.load()
    assert numbers(stand.topic) == left_over({0: 1, 1: 2, 2: 3})


def test_exported_cursors_can_be_imported(stand: Stand, tmp_path: Path) -> None:
    stand.commit("old", {0: 5, 1: 6, 2: 7})
    assert stand("offsets", "import", "clicks", "--from", "group:old").exit_code == 0
    for form in ("--json", "--csv"):
        (tmp_path / form).write_text(stand("offsets", "export", "clicks", form).stdout)
        shutil.rmtree(stand.home / "lake")
        assert stand("offsets", "import", "clicks", "--from", f"file:{tmp_path / form}").exit_code == 0
        assert [stand.topic.covered(id_)[1] for id_ in (P0, P1, P2)] == [5, 6, 7]


def test_a_dry_run_changes_nothing(stand: Stand) -> None:
    stand.commit("old", {0: 5, 1: 6, 2: 7})
    result = stand("offsets", "import", "clicks", "--from", "group:old", "--dry-run")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["clicks", str(number), str(5 + number), str(5 + number), "0", "30", str(25 - number)] for number in range(3)
    ]
    assert stand.topic.table.newest() is None
    assert stand.topic.load().rows == 90


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        ({}, "group:old has no offset for this topic"),
        ({P0: None}, "group:old has no offset for this topic"),
        ({**WHOLE, P1: 31}, r"partition 1: offset 31 is beyond the end of the log \[0, 30\)"),
        ({P0: 0, P1: 0}, r"has no offset for partition 2, whose log is \[0, 30\); give --missing earliest"),
        ({P0: 0, P1: None}, r"partition 1, whose log is .* \(and 1 more\)"),
        ({**WHOLE, BrokerPartition(None, 3): 0}, "partition 3, but the cluster has no such partition now"),
        ({**WHOLE, BrokerPartition(0, 0): 0}, "partition 0-0, but the cluster has no such partition now"),
    ],
)
def test_offsets_that_do_not_fit_the_logs_are_refused(imported: Imported, message: str, stand: Stand) -> None:
    with pytest.raises(ImportRefused, match=message):
        planned(stand, imported)
    assert stand.topic.table.newest() is None


def test_a_topic_that_the_cluster_does_not_have_is_refused(stand: Stand) -> None:
    with pytest.raises(TopicUnknown):
        planned(stand, dict(WHOLE), topic="views")


def test_partitions_without_an_offset_are_loaded_completely_by_choice(stand: Stand) -> None:
    stand.commit("old", {0: 20})
    words = ("offsets", "import", "clicks", "--from", "group:old")
    assert "--missing earliest" in stand(*words).stderr
    result = stand(*words, "--missing", "earliest")
    assert result.exit_code == 0
    assert [line.split()[2] for line in result.stdout.splitlines()[1:]] == ["20", "-", "-"]
    assert stand.topic.load().rows == 70
    assert numbers(stand.topic) == left_over({0: 20, 1: 0, 2: 0})


def expire(stand: Stand, upto: int) -> None:
    """Delete the records of partition 0 below an offset, as retention does."""
    part = DeleteRecordsPartition(partition_index=0, offset=upto)
    with Client(stand.port) as client:
        topic = DeleteRecordsTopic(name="clicks", partitions=(part,))
        client.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=1000))


def test_expired_offsets_are_refused_or_become_a_gap_by_choice(stand: Stand) -> None:  # fault B07
    expire(stand, 12)
    imported: Imported = {P0: 5, P1: 0, P2: 0}
    with pytest.raises(ImportRefused, match=r'offsets \[5, 12\) expired before the import; set on_expired = "skip"'):
        planned(stand, imported)
    import_offsets(stand.topic.table, planned(stand, imported, choices=Choices(on_expired="skip")))
    assert stand.topic.covered(P0) == (5, 12)
    stand.topic.load()
    assert numbers(stand.topic) == left_over({0: 12, 1: 0, 2: 0})
    assert stand.topic.problems() == ()


def test_a_table_that_was_loaded_is_refused(stand: Stand) -> None:
    early = planned(stand, dict(WHOLE))
    stand.topic.load()
    with pytest.raises(ImportRefused, match="the table was loaded already"):
        planned(stand, dict(WHOLE))
    with pytest.raises(ImportRefused, match="the table was loaded already"):
        import_offsets(stand.topic.table, early)
    assert stand.topic.version == 1


def test_an_import_is_refused_if_a_load_commits_first(stand: Stand) -> None:  # faults L05, L06
    early = planned(stand, {P0: 30, P1: 30, P2: 30})
    snapshot = stand.topic.table.snapshot()
    stand.topic.load()
    with pytest.raises(CommitRefused, match="loaded the table first; nothing was imported"):
        early.change.rebased(stand.topic.table.snapshot())
    assert early.change.rebased(snapshot) is early.change
    assert numbers(stand.topic) == list(range(90))
