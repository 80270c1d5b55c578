"""`penstock complete` ends with 0 if a table is complete through a time, waits for it, and prints what is known."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from unittest.mock import patch

import pytest
from click.testing import Result

import penstock as public
from kafka_io.model import BrokerPartition
from pipelines.cli.output import shown_status
from pipelines.defs.catalog.table_facts import table_facts
from pipelines.ledger.event_time import EventTime, LateRows, PartitionTime
from pipelines.maintenance.history import history
from pipelines.plan.valid_through import TimesOfLoad
from pipelines.status import completeness
from pipelines.status.completeness import complete_through, wait_until_complete
from pipelines.status.status import TopicStatus
from resources.errors import EventTimeUnknown, TableMissing
from resources.printed import printed
from tests.small_table import SmallTable

Penstock = Callable[..., Result]
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def announce(
    small: SmallTable,
    valid_through_ms: int | None,
    *,
    late: LateRows = MappingProxyType({}),
    moved_back_by: str = "",
    **partitions: PartitionTime,
) -> None:
    """Commit rows together with this valid-through."""
    times = {BrokerPartition(0, int(name[1:])): time for name, time in partitions.items()}
    event_time = EventTime(
        column="timestamp",
        lateness_ms=1000,
        valid_through_ms=valid_through_ms,
        partitions=times,
        late=dict(late),
        moved_back_by=moved_back_by,
    )
    with patch.object(TimesOfLoad, "after", lambda *_: event_time):
        _, cursor = small.covered().get(BrokerPartition(0, 0), (0, 0))
        small.commit(small.write(cursor, cursor + 50))


@pytest.mark.parametrize(("through", "code"), [("2026-01-02T12:00Z", 0), ("2026-01-02T12:00:00.001Z", 1)])
def test_the_exit_code_says_whether_the_table_is_complete(
    penstock: Penstock, small: SmallTable, through: str, code: int
) -> None:
    announce(small, NOON_MS)
    result = penstock("complete", "clicks", "--through", through)
    assert result.exit_code == code
    assert f"is {'not ' * code}complete through 2026-01-02 12:00:00 UTC" in result.stdout


def test_a_table_without_any_proof_is_not_complete(penstock: Penstock, small: SmallTable) -> None:
    announce(small, None, p0=PartitionTime(proven_ms=1), p1=PartitionTime())
    result = penstock("complete", "clicks", "--through", "1970-01-01T00:00Z")
    assert result.exit_code == 1
    assert "valid through no time" in result.stdout
    assert "partitions without a proof: 0-1" in result.stdout


def test_the_result_is_json_for_scripts(penstock: Penstock, small: SmallTable) -> None:
    announce(small, NOON_MS, p0=PartitionTime(end=50, asked_ms=NOON_MS, at_end=True, proven_ms=NOON_MS))
    document = json.loads(penstock("complete", "clicks", "--through", "2026-01-02T11:00Z", "--json").stdout)
    [result] = document["results"]
    assert (document["exit_code"], result["complete"], result["valid_through_ms"]) == (0, True, NOON_MS)
    assert (result["event_time"], result["allowed_lateness_ms"], result["version"]) == ("timestamp", 1000, 3)
    [partition] = result["partitions"]
    assert (partition["broker"], partition["partition"], partition["at_end"]) == (0, 0, True)


def test_a_topic_that_records_no_event_time_is_an_error(penstock: Penstock) -> None:
    result = penstock("complete", "clicks", "--through", "-1h")
    assert result.exit_code == 1
    assert 'event_time = "timestamp"' in " ".join(result.stderr.split())


@pytest.mark.parametrize("through", ["latest", "7", "soon"])
def test_what_is_no_time_is_wrong_use(penstock: Penstock, through: str) -> None:
    assert penstock("complete", "clicks", "--through", through).exit_code == 2


def test_the_wait_ends_when_the_table_is_complete(small: SmallTable) -> None:
    announce(small, NOON_MS - 1)
    waits: list[float] = []

    def load_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            announce(small, NOON_MS)

    known = wait_until_complete(small.table, NOON_MS, 60, sleep=load_meanwhile, clock=lambda: float(len(waits)))
    assert known.is_through(NOON_MS)
    assert waits == [completeness._POLL_S] * 2


def test_the_wait_is_bounded(small: SmallTable) -> None:
    announce(small, NOON_MS - 1)
    now = [0.0]

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    known = wait_until_complete(small.table, NOON_MS, 12, sleep=pass_time, clock=lambda: now[0])
    assert (known.is_through(NOON_MS), now[0]) == (False, 12)


def test_python_gets_the_time_of_a_table_or_of_its_uri(small: SmallTable) -> None:
    announce(small, NOON_MS)
    assert complete_through(small.table) == public.complete_through(small.uri) == NOON
    announce(small, None)
    assert complete_through(small.table) is None


def test_a_table_that_says_nothing_is_an_error_in_python(small: SmallTable) -> None:
    with pytest.raises(EventTimeUnknown):
        complete_through(small.table)
    with pytest.raises(TableMissing):
        complete_through(f"{small.uri}s")


def test_history_has_the_record_and_names_late_rows_and_what_moved_it_back(
    penstock: Penstock, small: SmallTable
) -> None:
    announce(small, NOON_MS, late={"2026-01-02T10": 1200}, moved_back_by="backfill")
    [result] = json.loads(penstock("history", "clicks", "--limit", "1", "--json").stdout)["results"]
    assert result["event_time"]["valid_through_ms"] == NOON_MS
    [newest, _] = islice(history(small.table), 2)
    assert newest.notes[:2] == ("1,200 late rows", "valid through 2026-01-02 12:00:00 UTC, moved back by backfill")
    announce(small, None, moved_back_by="backfill")
    assert next(history(small.table)).notes[0] == "valid through nothing, moved back by backfill"


def test_status_has_a_column_for_it_if_a_topic_asks(capsys: pytest.CaptureFixture[str]) -> None:
    topic = TopicStatus(cluster="main", topic="clicks", incarnation="7", table="/lake/main/clicks")
    for status, shown in ((topic, False), (replace(topic, valid_through_ms=NOON_MS), True)):
        shown_status.statuses([printed(status.result(NOON_MS))], now_ms=NOON_MS)
        output = capsys.readouterr().out
        assert ("VALID THROUGH" in output) is ("2026-01-02 12:00:00 UTC" in output) is shown


def test_dagster_shows_it_among_the_facts_of_the_table(small: SmallTable) -> None:
    announce(small, NOON_MS)
    facts = table_facts(small.lake, "main", "clicks")
    assert facts is not None
    assert facts.metadata["valid_through"].value == NOON.timestamp()
    announce(small, None)
    facts = table_facts(small.lake, "main", "clicks")
    assert facts is not None
    assert "valid_through" not in facts.metadata
