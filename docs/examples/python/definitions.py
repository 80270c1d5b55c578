"""Kafka topics as assets of a project in plain Python, which has its own executor, resources and IO manager."""

from pathlib import Path

import dagster as dg
import polars as pl

from penstock import PenstockTranslator, TopicProps, build_defs

HERE = Path(__file__).parent


class ByDomain(PenstockTranslator):
    """Puts each topic into the asset group that its name begins with: `shop.orders` into `shop`."""

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """The spec of the asset of a topic."""
        return super().get_asset_spec(topic).replace_attributes(group_name=topic.name.partition(".")[0])


class Lake(dg.ConfigurableResource):
    """The folder of the tables. Penstock has resources of its own, so this name is free."""

    folder: str

    def table(self, topic: str) -> pl.LazyFrame:
        """The table of a topic."""
        return pl.scan_delta(f"{self.folder}/main/{topic}")


@dg.asset(deps=[["lake", "main", "shop.orders"]], automation_condition=dg.AutomationCondition.eager())
def order_count(lake: Lake) -> int:
    """How many orders there are."""
    return lake.table("shop.orders").select(pl.len()).collect().item()


defs = dg.Definitions.merge(
    build_defs(HERE / "penstock.toml", translator=ByDomain()),
    dg.Definitions(
        assets=[order_count],
        resources={"lake": Lake(folder=str(HERE / "tables"))},
        executor=dg.multiprocess_executor,
    ),
)
