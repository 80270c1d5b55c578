"""A small table in an object store, whose requests are counted."""

from dataclasses import replace

from kafka_io.model import OffsetRange
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_task import FetchTask
from resources.stores.lake import Lake
from tests.fakes.object_store import BUCKET, ObjectStore
from tests.small_table import Small, SmallTable


class SmallStore(SmallTable):
    """A small table in the store."""

    def __init__(self, store: ObjectStore, name: str = "lake") -> None:
        Small.__init__(self)
        self.store = store
        self.lake = Lake(root=f"s3://{BUCKET}/{name}", options=store.options)
        self.uri = self.lake.table_uri("main", "clicks")
        self.table = DeltaLakeTable.of(self.lake, "main", "clicks")
        self.table.snapshot()

    def task(self, offsets: OffsetRange) -> FetchTask:
        """The task of a slice."""
        return replace(super().task(offsets), options=self.lake.options)

    def key(self, name: str) -> str:
        """The key of an object in the log."""
        return f"{self.uri.removeprefix(f's3://{BUCKET}/')}/_delta_log/{name}"
