"""Mutants that behave like the original, each with the reason: no test can notice them."""

from collections.abc import Mapping

_ALL_ALIKE = "either all partitions of a topic have a broker or none has, and without partitions nothing is cut"
_BOUNDS = "the bounds of a file are wider than the times of its rows, so none has a time of exactly this bound"
_CLOCK = "it decides about a file or commit whose age is exactly the limit, and both decisions are right"


EQUIVALENT: Mapping[tuple[str, str, str], str] = {
    (
        "pipelines/commit/commit.py",
        "LoadChange._new_last_messages",
        "newest_message.offset < last.offset -> newest_message.offset <= last.offset",
    ): "two slices of a commit do not overlap, so their last messages have different offsets",
    (
        "pipelines/verify/complete_files.py",
        "CompleteFiles._paths_in",
        "self._last_us >= window.start -> self._last_us > window.start",
    ): _BOUNDS,
    (
        "pipelines/verify/complete_files.py",
        "CompleteFiles._paths_in",
        "self._first_us < window.stop -> self._first_us <= window.stop",
    ): _BOUNDS,
    (
        "pipelines/verify/complete_files.py",
        "CompleteFiles._read",
        "False -> True",
    ): "Arrow's threads read the same rows; they only keep more memory",
    (
        "pipelines/identity/divergence.py",
        "DivergenceSearch.ranges_from",
        "committed.offsets.stop > start -> committed.offsets.stop >= start",
    ): "a range that ends at the log's earliest offset has no row from there on, and is left out for that reason",
    (
        "pipelines/fetch/slice_fetcher.py",
        "SliceFetcher.slice_sizes",
        (
            "all((offsets.partition.broker is not None for offsets in wanted)) -> "
            "any((offsets.partition.broker is not None for offsets in wanted))"
        ),
    ): _ALL_ALIKE,
    (
        "pipelines/fetch/formats.py",
        "_protobuf_of_all_messages",
        "True -> False",
    ): "it runs at import, and the encodings that are made there stay: test_decoding.py would notice it",
    (
        "pipelines/fetch/slice_fetcher.py",
        "loading_time",
        "timedelta() < behind <= _CLOCK_STANDS_STILL -> timedelta() <= behind <= _CLOCK_STANDS_STILL",
    ): "a time to which nothing is added is the same time",
    (
        "pipelines/ledger/slice_times.py",
        "TimesOfRows.add",
        "bounds['min'] < late_before_ms * per_ms -> bounds['min'] <= late_before_ms * per_ms",
    ): "this is a shortcut: no time is below the smallest one, so the filter finds no late rows either",
    (
        "pipelines/ledger/incarnations.py",
        "_PartitionExtents.overlapping",
        "older.stop <= self.extents[0].start -> older.stop < self.extents[0].start",
    ): "this is a shortcut: the search below finds no extent either for a range that ends where the first one starts",
    (
        "pipelines/load/planned.py",
        "_first_target",
        (
            "any((partition.broker is not None for partition in bounds)) -> "
            "all((partition.broker is not None for partition in bounds))"
        ),
    ): _ALL_ALIKE,
    (
        "pipelines/plan/plan.py",
        "_outside_log",
        "offset < bound.earliest -> offset <= bound.earliest",
    ): "plan calls this only for an offset outside of the log, and the log's earliest offset is inside",
    (
        "pipelines/table/stored_table.py",
        "StoredTable.set_aside",
        "True -> False",
    ): "the folder is inside of the table's, which exists",
    (
        "pipelines/comparison/table_rows.py",
        "LiveRows.__init__",
        "committed.offsets.size > 0 -> committed.offsets.size >= 0",
    ): "an empty range only records where a partition begins: no offset is inside, and it comes before the others",
    (
        "pipelines/comparison/table_rows.py",
        "_as_written_now",
        "place < 0 -> place <= 0",
    ): "the column of the offset is the first one, so that of the headers never is",
    (
        "pipelines/fetch/slice_file.py",
        "SliceFile.write",
        "self.waiting_bytes >= ROW_GROUP_BYTES -> self.waiting_bytes > ROW_GROUP_BYTES",
    ): "rows of exactly this size may be a row group, or wait for the next rows: the file has the same rows",
    (
        "pipelines/fetch/day_files.py",
        "DayFiles.write",
        (
            "sum((file.waiting_bytes for file in self._by_day.values())) > _MAX_WAITING_BYTES -> "
            "sum((file.waiting_bytes for file in self._by_day.values())) >= _MAX_WAITING_BYTES"
        ),
    ): "rows of exactly this size may wait or be written: the files have the same rows",
    (
        "pipelines/fetch/unreadable.py",
        "readable_batches",
        "position < offset < target -> position <= offset < target",
    ): "nothing is between two equal offsets, so nothing is read again",
    (
        "pipelines/schemas/schema_headers.py",
        "",
        "2 ** 31 - 1 -> 2 ** 31",
    ): "every value ends before both",
    (
        "pipelines/table/exact_sets.py",
        "inline_exact",
        "len(offsets.firsts) < _MAX_INLINE_BYTES -> len(offsets.firsts) <= _MAX_INLINE_BYTES",
    ): "a set of so many elements has more bytes: one for each of them, its form and its size",
    (
        "pipelines/table/table_store.py",
        "CommitOutcomeUnknown.__init__",
        "super().__init__(reason) -> pass",
    ): "Python has kept the reason when it made the object",
    (
        "pipelines/plan/slices.py",
        "_equal_share",
        "size * count > remaining -> size * count >= remaining",
    ): "if the rest is exactly enough for sizes like this one, both maxima leave every size as it is",
    (
        "pipelines/plan/slices.py",
        "cut_slices",
        "offsets.size > 0 -> offsets.size >= 0",
    ): "an empty range has a share of 0 offsets, and no slice is taken of it",
    (
        "pipelines/plan/slices.py",
        "_limited",
        "piece.size <= limit -> piece.size < limit",
    ): "a piece that is cut to its own size is the same piece",
    (
        "kafka_io/reader/v07/partition.py",
        "Partition07.unreadable",
        "start < next_offset < stop -> start <= next_offset < stop",
    ): "next_offset is start only if the message has the length 0, and such a message is not valid",
    (
        "pipelines/verify/verify.py",
        "_Counts._add",
        "len(problems) > 2 * MAX_PROBLEMS -> len(problems) >= 2 * MAX_PROBLEMS",
    ): "the first problems in order stay the same, whenever the others are dropped",
    (
        "pipelines/table/table_commit.py",
        "TableCommit",
        "False -> True",
    ): "`read_commit` gives each commit of a log this value, and needs no default",
    ("pipelines/maintenance/clean.py", "UnneededFiles.find", "commit.time <= since -> commit.time < since"): _CLOCK,
    ("pipelines/maintenance/clean.py", "UnneededFiles.find", "info.mtime < since -> info.mtime <= since"): _CLOCK,
}
"""The reason by file, function and change of the mutant."""
