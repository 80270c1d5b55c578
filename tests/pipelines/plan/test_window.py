"""A window of the logs: what a run loads of it, in every version of Kafka, and what the next run finds."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock, patch

import pytest

from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.errors import KafkaIOError, NetworkError, Where
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.ledger.ledger import Coverage, TableState, TopicFindings, TopicIdentity
from pipelines.plan.positions import NamedPosition, TimePosition
from pipelines.plan.window import LoadWindow, OffsetWindow, _chosen_starts
from tests.kafka_io.testing.modern.talk import START_MS, Client, batch
from tests.live import LiveCluster, numbered
from tests.pipelines.loaded import Loaded

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_769_860_800_000
A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")
LOG = Bounds(earliest=10, latest=50)


@pytest.mark.parametrize(
    ("since", "until", "window"),
    [
        (None, None, LoadWindow()),
        ("earliest", None, LoadWindow(since=NamedPosition.EARLIEST)),
        ("latest", "latest", LoadWindow(since=NamedPosition.LATEST, until=NamedPosition.LATEST)),
        ("-2h", "-1h", LoadWindow(since=TimePosition(NOON_MS - 7_200_000), until=TimePosition(NOON_MS - 3_600_000))),
        (None, "2026-01-31T12:00", LoadWindow(until=TimePosition(NOON_MS))),
        (
            "earliest",
            "2026-01-31",
            LoadWindow(since=NamedPosition.EARLIEST, until=TimePosition(NOON_MS - 12 * 3_600_000)),
        ),
    ],
)
def test_a_window_is_parsed_from_its_texts(since: str | None, until: str | None, window: LoadWindow) -> None:
    assert LoadWindow.parse(since, until, now=NOW) == window


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("12", None, "an offset belongs to a single partition"),
        (None, "12", "an offset belongs to a single partition"),
        ("committed", None, "is not a position in a log"),
        ("yesterday", None, "is not a position in a log"),
        (None, "earliest", "nothing ends at earliest"),
        ("latest", "-1h", "nothing is between latest and -1h"),
        ("-1h", "-2h", "nothing is between -1h and -2h"),
        ("-60m", "-1h", "nothing is between"),
        ("2999-01-01", None, "2999-01-01 is in the future, so no record is there to load"),  # fault U10
    ],
)
def test_texts_that_are_no_window_are_refused(since: str | None, until: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LoadWindow.parse(since, until, now=NOW)


def reach(
    window: LoadWindow,
    covered: Coverage,
    bounds: dict[BrokerPartition, Bounds],
    answers: dict[BrokerPartition, int | KafkaIOError] | None = None,
    oldest: dict[BrokerPartition, int] | None = None,
    **standing: Any,
) -> tuple[OffsetWindow, set[BrokerPartition]]:
    """The window in offsets, and the partitions whose times were asked for; `oldest` are the oldest records then."""
    asked: set[BrokerPartition] = set()

    def offsets_at(_topic: str, of: Iterable[BrokerPartition], time: int) -> dict[BrokerPartition, int | KafkaIOError]:
        if time == 0:
            return {id_: (oldest or {}).get(id_, bounds[id_].earliest) for id_ in of}
        asked.update(of)
        return {id_: (answers or {})[id_] for id_ in of}

    cluster = cast("Cluster", Mock(spec=Cluster, offsets_at=offsets_at, ends_at=offsets_at))
    stands = TableState(topic=TOPIC, covered=covered, **standing)
    return window.in_offsets(cluster, stands, bounds, start="latest", now_ms=NOON_MS), asked


def test_a_new_table_begins_as_the_settings_say_unless_the_window_does() -> None:
    assert reach(LoadWindow(), {}, {A: LOG})[0].begins == {A: 50}
    assert reach(LoadWindow(since=NamedPosition.EARLIEST), {}, {A: LOG})[0].begins == {A: 10}
    assert reach(LoadWindow(since=TimePosition(1)), {}, {A: LOG}, {A: 30})[0].begins == {A: 30}
    assert reach(LoadWindow(), {A: (20, 30)}, {A: LOG})[0].begins == {}


@pytest.mark.parametrize("since", [None, NamedPosition.EARLIEST, NamedPosition.LATEST])
def test_a_partition_that_appears_later_begins_at_offset_0(since: NamedPosition | None) -> None:  # fault P01
    window, _ = reach(LoadWindow(since=since), {A: (20, 30)}, {A: LOG, B: LOG})
    assert (window.begins, window.start_times([B])) == ({B: 0}, {})


@pytest.mark.parametrize(("answer", "oldest", "begin"), [(30, 10, 30), (10, 10, 0), (30, 30, 0), (99, 10, 50)])
def test_a_partition_that_could_not_be_asked_begins_at_the_chosen_time_unless_records_may_have_expired(
    answer: int, oldest: int, begin: int
) -> None:
    """An older record before the answer, which is asked for after it, shows that no newer one expired (fault P02).

    Without this record the partition begins at offset 0, so that the plan reports what expired. In the third case
    compaction has removed the records from the first offset of the log, which is 10, up to the answer.
    """
    window, asked = reach(
        LoadWindow(),
        {A: (20, 30)},
        {A: LOG, B: LOG},
        {B: answer},
        oldest={B: oldest},
        start_times={B: 7},
    )
    assert (window.begins, asked) == ({B: begin}, {B})


@pytest.mark.parametrize(
    ("since", "begins_ms"),
    [(None, NOON_MS), (NamedPosition.LATEST, NOON_MS), (TimePosition(7), 7), (NamedPosition.EARLIEST, None)],
)
def test_the_choice_of_a_start_is_a_time_for_partitions_that_could_not_be_asked(
    since: NamedPosition | TimePosition | None, begins_ms: int | None
) -> None:  # fault P02
    error = NetworkError("no answer")
    window, _ = reach(LoadWindow(since=since), {}, {A: LOG}, {A: error})
    assert window.start_times([B]) == ({} if begins_ms is None else {B: begins_ms})


def test_a_window_may_begin_before_the_chosen_time() -> None:
    begin_at_5 = LoadWindow(since=TimePosition(5))
    window, _ = reach(begin_at_5, {A: (20, 30)}, {B: LOG}, {B: 30}, start_times={B: 7})
    assert window.begins == {B: 30}
    earliest, _ = reach(LoadWindow(since=NamedPosition.EARLIEST), {A: (20, 30)}, {B: LOG}, {B: 30}, start_times={B: 7})
    assert earliest.begins == {B: 10}


def test_a_recreated_topic_is_loaded_completely() -> None:  # faults B05, B06, P01
    window, _ = reach(LoadWindow(since=NamedPosition.LATEST), {}, {A: LOG}, findings=TopicFindings(replaced="6"))
    assert (window.starts, window.begins) == ({}, {A: 0})


def test_the_window_stays_inside_bounds_that_have_changed_since_they_were_read() -> None:
    window = LoadWindow(since=TimePosition(1), until=TimePosition(2))
    result, _ = reach(window, {}, {A: LOG, B: LOG}, {A: 60, B: 5})
    assert (result.begins, result.ends) == ({A: 50, B: 10}, {A: 50, B: 10})


def test_brokers_are_asked_for_times_only_if_the_answer_matters() -> None:  # fault S10
    empty = {BrokerPartition(None, number): Bounds(earliest=7, latest=7) for number in range(2, 1000)}
    window = LoadWindow(since=TimePosition(1), until=TimePosition(2))
    assert reach(window, {}, {A: LOG, **empty}, {A: 30})[1] == {A}
    assert reach(window, {A: (10, 50), B: (20, 50)}, {A: LOG, B: LOG, **empty}, {B: 15})[1] == {B}
    assert reach(LoadWindow(since=TimePosition(1)), {A: (10, 50)}, {A: LOG, B: LOG})[1] == set()


def test_a_partition_whose_time_is_not_found_is_not_loaded() -> None:
    error = NetworkError("no answer")
    result, _ = reach(LoadWindow(since=TimePosition(1)), {}, {A: LOG, B: LOG}, {A: error, B: 30})
    assert result == OffsetWindow(begins={B: 30}, begins_ms=1, ends={B: 50}, errors={A: error})


def test_a_backfill_beyond_the_window_is_a_warning() -> None:
    window = LoadWindow(since=NamedPosition.EARLIEST, until=TimePosition(2))
    covered = {A: (30, 40), B: (15, 40)}
    result, _ = reach(window, covered, {A: LOG, B: LOG}, {A: 20, B: 20})
    assert list(result.warnings(covered)) == [
        "the backfill reaches up to the table's first offset: partition 0 up to 30, beyond the window's end 20"
    ]


@dataclass(slots=True)
class Modern:
    """A broker with numbered records, a second apart, in the two partitions of `clicks`."""

    port: int
    topic: Loaded

    def publish(self, first: int, stop: int) -> None:
        """Records of these numbers, the same to both partitions."""
        with Client(self.port) as client:
            for number in range(first, stop, 5):
                for partition in (0, 1):
                    client.produce("clicks", batch(5, first=number), partition=partition)

    def offsets(self) -> list[list[int]]:
        """Those of the table's rows, by partition."""
        rows = self.topic.rows("partition", "offset")
        return [[offset for number, offset in rows if number == partition] for partition in (0, 1)]


@pytest.fixture
def modern(tmp_path: Path) -> Iterator[Modern]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as server:
        with Client(server.port) as client:
            assert client.create("clicks", 2) == 0
        settings = tmp_path / "penstock.toml"
        settings.write_text(
            f'lake = "{tmp_path / "lake"}"\n[clusters.main]\nbootstrap = "127.0.0.1:{server.port}"\n'
            "[caps]\nslice_records = 7\nattempts = 2\n"
        )
        yield Modern(server.port, Loaded(settings))


def time_of(number: int) -> TimePosition:
    """When the record of that number was made."""
    return TimePosition(START_MS + 1000 * number)


def test_a_new_table_begins_where_the_window_does(modern: Modern) -> None:
    modern.publish(0, 30)
    assert modern.topic.load(window=LoadWindow(since=time_of(12))).rows == 36
    assert modern.offsets() == [list(range(12, 30))] * 2
    modern.publish(30, 40)
    modern.topic.load()
    assert modern.offsets() == [list(range(12, 40))] * 2
    assert modern.topic.problems() == ()


def test_an_existing_table_is_backfilled_down_to_the_window(modern: Modern) -> None:
    modern.publish(0, 20)
    modern.topic.load(window=LoadWindow(since=NamedPosition.LATEST))
    modern.publish(20, 30)
    assert modern.topic.load().rows == 20
    assert modern.topic.load(window=LoadWindow(since=time_of(8))).rows == 24
    assert modern.topic.covered(A) == (8, 30)
    assert modern.topic.load(window=LoadWindow(since=time_of(25))).rows == 0
    assert modern.topic.load(window=LoadWindow(since=NamedPosition.EARLIEST)).rows == 16
    assert modern.offsets() == [list(range(30))] * 2
    assert modern.topic.problems() == ()


def test_the_run_stops_at_the_end_of_the_window_and_the_next_run_continues_there(modern: Modern) -> None:
    modern.publish(0, 30)
    result = modern.topic.load(window=LoadWindow(until=time_of(11)))
    assert (result.rows, result.lag_before, result.lag) == (22, 60, 38)
    assert modern.topic.load(window=LoadWindow(until=time_of(5))).rows == 0
    assert modern.topic.covered(B) == (0, 11)
    modern.topic.load()
    assert modern.offsets() == [list(range(30))] * 2
    assert modern.topic.problems() == ()


def test_a_new_table_contains_only_the_window(modern: Modern) -> None:
    modern.publish(0, 30)
    assert modern.topic.load(window=LoadWindow(since=time_of(8), until=time_of(19))).rows == 22
    assert modern.offsets() == [list(range(8, 19))] * 2


def test_a_backfill_reaches_a_table_that_begins_after_the_window_without_a_hole(modern: Modern) -> None:
    modern.publish(0, 30)
    modern.topic.load(window=LoadWindow(since=time_of(20)))
    result = modern.topic.load(window=LoadWindow(since=time_of(5), until=time_of(10)))
    assert modern.offsets() == [list(range(5, 30))] * 2
    [warning] = result.warnings
    assert warning.startswith("the backfill reaches up to the table's first offset: partition 0 up to 20, beyond")
    assert warning.endswith("the window's end 10 (and 1 more)")
    assert modern.topic.problems() == ()


def test_an_empty_window_lets_the_next_run_begin_there(modern: Modern) -> None:
    modern.publish(0, 10)
    result = modern.topic.load(window=LoadWindow(since=time_of(100)))
    assert (result.rows, len(result.warnings)) == (0, 1)
    assert result.warnings[0].startswith("nothing is loaded, because the brokers have no records")  # fault U10
    modern.publish(10, 15)
    assert modern.topic.load().rows == 10
    assert modern.offsets() == [list(range(10, 15))] * 2


def test_a_partition_whose_time_is_not_found_fails_the_run_but_the_others_are_loaded(modern: Modern) -> None:
    modern.publish(0, 30)
    error = NetworkError("no answer", Where(partition=0))

    def offsets_at(_self: ModernCluster, _topic: str, of: Iterable[BrokerPartition], _ms: int) -> dict[Any, Any]:
        return {id_: error if id_ == A else 12 for id_ in of}

    with (
        patch.object(ModernCluster, "ends_at", offsets_at),
        modern.topic.loader(window=LoadWindow(until=time_of(12))) as loader,
    ):
        result = loader.load("clicks")
    sentence = "NetworkError: no answer [cluster=main topic=clicks partition=0] (PS-202)"
    assert (result.error, result.retriable) == (sentence, True)
    assert result.rows == 12
    assert modern.offsets() == [[], list(range(12))]
    modern.topic.load()
    assert modern.offsets() == [list(range(30))] * 2


@pytest.mark.zookeeper
def test_windows_of_0_7_have_whole_segments_and_lose_nothing(live: LiveCluster) -> None:
    topic = Loaded(live.settings)
    live.publish("clicks", numbered(1000), codecs=("none",))
    segments = {log: sorted(log.glob("*.kafka")) for log in live.home.glob("broker-*/clicks-*")}
    assert all(len(files) >= 3 for files in segments.values())
    for files in segments.values():
        for hour, file in enumerate(files):
            os.utime(file, (3600 * hour, 3600 * hour))
    starts = {log.name + log.parent.name: [int(file.stem) for file in files] for log, files in segments.items()}
    sizes = {
        log.name + log.parent.name: int(files[-1].stem) + files[-1].stat().st_size for log, files in segments.items()
    }

    def named(id_: BrokerPartition) -> str:
        return f"clicks-{id_.partition}broker-{id_.broker}"

    ids = [BrokerPartition(broker, number) for broker in (0, 1) for number in (0, 1)]
    topic.load(window=LoadWindow(since=TimePosition(3_600_000), until=TimePosition(7_200_000)))
    # fault U17: up to the end of the first segment that was written to after the time, which may have begun before it
    edges = {name: [*offsets, sizes[name]] for name, offsets in starts.items()}
    ends = {id_: edges[named(id_)][min(4, len(edges[named(id_)]) - 1)] for id_ in ids}
    assert [topic.covered(id_) for id_ in ids] == [(starts[named(id_)][1], ends[id_]) for id_ in ids]
    topic.load(window=LoadWindow(since=NamedPosition.EARLIEST, until=TimePosition(7_200_000)))
    assert [topic.covered(id_) for id_ in ids] == [(0, ends[id_]) for id_ in ids]
    topic.load()
    assert Counter(value for (value,) in topic.rows("value")) == Counter(numbered(1000))
    assert topic.problems() == ()


def test_a_window_may_begin_now() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert LoadWindow.parse(now.isoformat(), None, now=now).since == TimePosition(round(now.timestamp() * 1000))


def test_a_backfill_that_ends_at_the_table_s_first_offset_has_no_warning() -> None:
    window = OffsetWindow(starts={A: 0}, ends={A: 10})
    assert list(window.warnings({A: (10, 20)})) == []
    assert len(list(window.warnings({A: (11, 20)}))) == 1


def test_an_empty_partition_is_not_asked_for_the_start_that_was_chosen_for_it() -> None:
    state, cluster = TableState(topic=CLICKS, start_times={A: 5}), Mock()
    assert _chosen_starts(cluster, state, {A: Bounds(earliest=7, latest=7)}) == ({}, {})
    cluster.offsets_at.assert_not_called()


def test_a_partition_whose_chosen_start_cannot_be_asked_is_an_error() -> None:
    error = NetworkError("away")
    cluster = Mock(offsets_at=lambda *_: {A: error})
    state = TableState(topic=CLICKS, start_times={A: 5})
    assert _chosen_starts(cluster, state, {A: Bounds(earliest=7, latest=9)}) == ({}, {A: error})
