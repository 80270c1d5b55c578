"""Decodes the values of records as a load does, to show them: without a table, and without keeping anything.

The plan begins without columns. It gets the columns of a schema, or of the keys of a value, when a record needs them.
"""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.fetch.decode_plan import layout_of
from pipelines.fetch.decoding import Decoding, OpenRegistry
from pipelines.fetch.typed_rows import IncompletePlan, TypedRows
from pipelines.layout.columns import ERROR_COLUMN, TOMBSTONE_COLUMN
from pipelines.table.table_store import TableSnapshot
from pipelines.tail.shown_value import ShownValue
from resources.settings.topic_formats import TopicFormat


class ValueDecoding:
    """Decodes the values of one topic of a typed format. A text has no fields: it is shown as it is."""

    def __init__(self, format_: TopicFormat, open_registry: OpenRegistry) -> None:
        # Keys are shown as they are, and so are the records that a load would leave out.
        load = format_.load.model_copy(update={"skip": None})
        of_values = format_.model_copy(update={"key_format": "raw", "load": load})
        snapshot = TableSnapshot(version=0, entry=None, layout=layout_of(of_values))
        self._decoding = Decoding(of_values, snapshot, open_registry)
        self._typed: TypedRows | None = None
        self._has_fields = format_.format != "text"

    def __call__(self, records: pa.RecordBatch) -> Sequence[ShownValue]:
        """The values of a batch of records, as kafka_io.records decodes them.

        Raises:
            KafkaIOError: the registry does not answer.
            TooManyColumns: nothing describes the values, and they have very many keys.
        """
        rows = self._rows(records)
        assert self._decoding.plan is not None
        names = self._decoding.plan.stored.names
        columns = [rows.column(name).to_pylist(maps_as_pydicts="lossy") for name in names]
        errors, tombstones = rows.column(ERROR_COLUMN).to_pylist(), rows.column(TOMBSTONE_COLUMN).to_pylist()
        shown_values = []
        for row, (error, is_tombstone) in enumerate(zip(errors, tombstones, strict=True)):
            if error is not None or is_tombstone or not self._has_fields:
                shown_values.append(ShownValue(error=error))
            else:
                fields = zip(names, (column[row] for column in columns), strict=True)
                shown_values.append(ShownValue(fields={name: value for name, value in fields if value is not None}))
        return shown_values

    def _rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        while True:
            if self._typed is None:
                assert self._decoding.plan is not None
                self._typed = TypedRows(self._decoding.plan)
            try:
                return self._typed.rows(records, {})
            except IncompletePlan as missing:
                self._decoding.learn_from([missing.needs])
                self._typed = None
