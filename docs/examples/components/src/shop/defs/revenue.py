"""The revenue of each customer, with DuckDB. It is computed after each load that brought orders."""

from pathlib import Path

import dagster as dg
import duckdb
from deltalake import DeltaTable

ORDERS = dg.AssetKey(["lake", "main", "orders"])
TABLE = Path(__file__).parent / "lake" / "tables" / "main" / "orders"


@dg.asset(deps=[ORDERS], automation_condition=dg.AutomationCondition.eager(), kinds={"duckdb"})
def revenue() -> dg.MaterializeResult:
    """The sum of the amounts of each customer."""
    orders = duckdb.from_arrow(DeltaTable(TABLE).to_pyarrow_table(columns=["customer", "amount"]))
    revenues = orders.aggregate("customer, sum(amount)").order("customer").fetchall()
    return dg.MaterializeResult(metadata={"revenue": dg.MetadataValue.json(dict(revenues))})
