"""Loads values into a typed table, and checks the table as its readers see it."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipelines.maintenance.clean import clean
from pipelines.reports.outcome import TopicLoad
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.fuzz.readers import check_readers, comparable

Values = Sequence[bytes | None]
ANY_BAD = {"max_bad_share": 1}
"""A setting: all records of a load may be bad."""
_MERGED_BYTES = 1 << 27


def check_table(
    loads: Sequence[Values],
    format_: Mapping[str, Any],
    *,
    registries: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
) -> list[dict[str, Any]]:
    """Load values, one load after the other, and check that all readers find each row by each of its values.

    They must find the same rows after the files were merged. The table must also be what the brokers have
    (`verify --deep`).

    Args:
        loads: the values of each load.
        format_: the settings of the topic.
        registries: the registries of the settings.
        session: asks Spark too.

    Returns:
        The rows in the order of their offsets.
    """
    with tempfile.TemporaryDirectory() as folder, FakeCluster(logs={0: log_of([])}) as fake:
        topic = TypedTopic(
            fake=fake, folder=Path(folder) / "lake", format_={**ANY_BAD, **format_}, registries=registries or {}
        )
        for values in loads:
            append(fake.logs[0], values)
            _check_load(topic.load(), len(values))
        problems = topic.deep().problems
        assert not problems, problems
        rows = check_readers(topic.table.uri, session)
        merged = clean(topic.table, keep=timedelta(days=1), target_bytes=_MERGED_BYTES, dry_run=False).merged
        if merged:
            again = check_readers(topic.table.uri, session)
            assert comparable(again) == comparable(rows), "a merge of files has changed rows"
        return rows


def _check_load(load: TopicLoad, rows: int) -> None:
    assert (load.error, load.rows) == (None, rows), f"{load.rows} of {rows} rows, and the error {load.error}"
