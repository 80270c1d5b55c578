"""The examples on the page about increments run one after the other, twice, and print what their comments say."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.increments.difference import LedgerDifference
from pipelines.increments.increment import Increment
from resources import errors
from tests.docs.pages import ROOT, run_blocks

PAGE = ROOT / "docs" / "increments.md"
EXAMPLES = run_blocks(PAGE, "python")
OUTPUTS = ("tax", "rounded", "order_sizes")
ORDERS = [
    {"customer": "Ada", "amount": 30.0},
    {"customer": "Bob", "amount": 7.0},
    {"customer": "Ada", "amount": 7.5},
]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.postgres,
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
]


def penstock(command: str) -> None:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output


def publish_and_load(*orders: object) -> None:
    Path("orders.jsonl").write_text("".join(f"{json.dumps(order)}\n" for order in orders))
    penstock("publish orders orders.jsonl")
    penstock("load orders")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Iterator[Path]:
    """The lake with the table of the topic `orders`, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", "")
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        Path("penstock.toml").write_text(
            f'lake = "{tmp_path / "lake"}"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n'
            '[topics.orders]\nformat = "json"\n'
        )
        publish_and_load(*ORDERS)
        yield tmp_path / "lake"


def run(number: int, block_text: str, postgres_dsn: str) -> None:
    block_text = block_text.replace("host=localhost dbname=reports", postgres_dsn)
    exec(compile(block_text, f"increments.md-{number}", "exec"), {"__name__": f"example_{number}"})


def amounts(lake: Path, output: str) -> list[float]:
    return sorted(DeltaTable(str(lake / output)).to_pyarrow_table().column("amount").to_pylist())


def test_the_examples_have_each_effect_once(lake: Path, postgres_dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number, block in enumerate(EXAMPLES):
        run(number, block.text, postgres_dsn)
        block.check_output(capsys.readouterr().out)
    publish_and_load({"customer": "Bob", "amount": 12.0})
    for _ in range(2):
        for number, block in enumerate(EXAMPLES):
            run(number, block.text.replace('print(done["since"]', 'done and print(done["since"]'), postgres_dsn)
    assert {output: amounts(lake, output) for output in OUTPUTS} == {
        "tax": [7.0, 7.5, 12.0, 30.0],
        "rounded": [7.0, 8.0, 12.0, 30.0],
        "order_sizes": [7.0, 7.5, 12.0, 30.0],
    }
    totals = DeltaTable(str(lake / "totals")).to_pyarrow_table().sort_by("customer").to_pylist()
    assert totals == [{"customer": "Ada", "amount_sum": 37.5}, {"customer": "Bob", "amount_sum": 19.0}]
    with psycopg.connect(postgres_dsn) as database:
        sizes = database.execute("select amount, size from order_sizes order by amount").fetchall()
    assert sizes == [(7.0, "small"), (7.5, "small"), (12.0, "large"), (30.0, "large")]
    with duckdb.connect("reports.duckdb") as connection:
        assert connection.execute("select amount from large_orders order by amount").fetchall() == [(12.0,), (30.0,)]


def test_the_example_of_dagster_depends_on_the_asset_of_the_topic(lake: Path) -> None:
    names: dict[str, object] = {}
    [block] = [block for block in EXAMPLES if "increment_asset" in block.text]
    exec(compile(block.text, "increments.md", "exec"), names)
    defs = names["defs"]
    assert isinstance(defs, dg.Definitions)
    graph = defs.get_repository_def().asset_graph
    assert graph.get(dg.AssetKey("order_sizes")).parent_keys == {dg.AssetKey(["lake", "main", "orders"])}


def test_the_page_names_each_kind_and_each_error() -> None:
    text = PAGE.read_text()
    kinds = {"new", "restarted", "replaced", "taken_back"}
    assert kinds <= set(LedgerDifference.__slots__)
    assert all(f"| `{kind}` |" in text for kind in kinds)
    own = {name for name in vars(errors) if name.startswith(("Increment", "Source", "Output", "RowsReplaced"))}
    assert {name for name in own if f"| `{name}` |" not in text} == set()


def test_every_method_on_the_page_exists() -> None:
    called = {
        node.attr
        for block in EXAMPLES
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "increment"
    }
    assert called == {"since", "version", "commit", "arrow", "removed", "dataset", "spark"}
    assert all(hasattr(Increment, name) for name in called)
