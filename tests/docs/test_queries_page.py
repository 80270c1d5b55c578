"""The queries on the page run on the table of the tutorial, and print what their comments say."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from resources.settings.settings import PATH_VARIABLE
from tests.docs.pages import ROOT
from tests.docs.stories import Step, penstock, run, steps
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, log_of

PAGE = "docs/queries.md"
STEPS = [step for step in steps(PAGE) if step.block.language == "python"]
SPARK = [step for step in STEPS if "pyspark" in step.block.text]
FILES = ("orders.jsonl", "coupon.jsonl")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the lake of the tutorial: the same records and versions, without its other steps."""
    home = tmp_path_factory.mktemp("queries")
    with (
        ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=home / "broker")) as broker,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(home)
        patch.delenv(PATH_VARIABLE, raising=False)
        settings = f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n'
        Path("penstock.toml").write_text(settings)
        for step in steps("docs/tutorial.md"):
            if any(f"`{name}`" in step.before for name in FILES):
                run(step, penstock)
        penstock("penstock publish orders orders.jsonl")
        penstock("penstock load orders")
        Path("penstock.toml").write_text(f'{settings}[topics.orders]\nformat = "json"\n')
        penstock("penstock redecode orders --all")
        penstock("penstock publish orders coupon.jsonl")
        penstock("penstock load orders")
        yield home


@pytest.mark.parametrize("step", [pytest.param(step, id=step.heading) for step in STEPS if step not in SPARK])
def test_a_query_of_the_page_prints_what_it_shows(step: Step, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop)
    run(step, penstock)


@pytest.mark.spark
def test_the_query_in_spark_prints_what_the_page_shows(
    shop: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    (step,) = SPARK
    run(step, penstock)


def test_every_reader_that_the_page_calls_tested_is_tested() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| [")]
    tested = {row[0].partition("](#")[2].rstrip(")") for row in rows if row[-1].startswith("yes")}
    headings = {step.heading.lower().rstrip("?").replace(" ", "-") for step in STEPS}
    assert len(rows) == 5
    assert tested == {heading for heading in headings if heading.startswith("how-do-i-use")}


def test_deltalake_still_has_the_error_that_the_page_warns_of(shop: Path) -> None:
    """If this test fails, deltalake was repaired: remove the section about `IS NULL`."""
    rows = DeltaTable(str(shop / "lake/main/orders")).to_pyarrow_dataset()
    has_coupon, has_error = (pc.field(name).is_valid() for name in ("coupon", "_error"))
    assert (rows.count_rows(filter=has_coupon), rows.count_rows(filter=~has_coupon)) == (4, 0)
    assert rows.count_rows(filter=pc.field("coupon") == "AUTUMN") == 1
    assert (rows.count_rows(filter=has_error), rows.count_rows(filter=~has_error)) == (0, 4)


def test_deltalake_still_has_the_error_for_structs(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_of([b'{"place": {"city": "Ulm"}, "tags": ["a"]}', b"{}"])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json"})
        assert topic.load().error is None
    table = DeltaTable(topic.table.uri)
    rows = table.to_pyarrow_dataset()
    assert [rows.count_rows(filter=pc.field(name).is_valid()) for name in ("place", "tags")] == [2, 1]
    assert rows.count_rows(filter=pc.field("place", "city").is_valid()) == 1
    files = duckdb.read_parquet(table.file_uris(), union_by_name=True, hive_partitioning=True)
    assert files.filter("place IS NOT NULL").select("place.city").fetchall() == [("Ulm",)]


def test_tables_need_the_versions_of_the_protocol_that_the_page_names(shop: Path) -> None:
    entry = (shop / "lake/main/orders/_delta_log" / f"{0:020}.json").read_text().splitlines()
    (protocol,) = (line["protocol"] for line in map(json.loads, entry) if "protocol" in line)
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    table = DeltaTable(str(shop / "lake/main/orders")).protocol()
    assert (table.min_reader_version, table.min_writer_version) == (1, 2)
