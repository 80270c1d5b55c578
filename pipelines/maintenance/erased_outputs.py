"""Deletes for good what erasures took out of Delta outputs of increments, if the owner of the outputs asks for it.

Consumers have left notes about their outputs. A note only says where to look: an output is touched only if its own log
has the progress of each consumer, and this progress has the effect of the erasure.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.source import NOTHING
from pipelines.maintenance.erased_files import ErasedFiles, delete_outdated
from pipelines.reports.table_notes import SeenConsumer, TableNotes
from pipelines.table.lake_table import LakeTable
from resources.errors import LoadError


def delete_erased_of_outputs(topic_table: LakeTable, erased: ErasedFiles, *, dry_run: bool) -> Sequence[ErasedFiles]:
    """Delete the files that the newest version of each output does not have, and their bounds in its log.

    Args:
        topic_table: the table of the topic.
        erased: the result for it.
        dry_run: report what would be deleted, and do nothing.
    """
    notes: dict[str, list[SeenConsumer]] = {}
    for note in TableNotes(topic_table.uri, topic_table.lake.options, SeenConsumer).read():
        if note.kind == DeltaOutput.__name__:
            notes.setdefault(note.output, []).append(note)
    snapshot = topic_table.newest()
    if erased.version is None or snapshot is None or snapshot.entry is None:
        return ()
    source = f"{snapshot.entry.topic.cluster}/{snapshot.entry.topic.name}"
    results = (
        _of_output(DeltaOutput(uri=uri, options=topic_table.lake.options), own, source, erased.version, dry_run=dry_run)
        for uri, own in sorted(notes.items())
    )
    return [result for result in results if result is not None]


def _of_output(
    output: DeltaOutput, notes: Sequence[SeenConsumer], source: str, version: int, *, dry_run: bool
) -> ErasedFiles | None:
    """The result for one output; None if there is no table, or if a consumer of the notes has not written to it."""
    result = ErasedFiles(table=output.uri)
    try:
        writers = [output.begin(note.consumer, source) for note in notes]
        opened = writers[0].opened
        if opened is None or any(writer.progress == NOTHING for writer in writers):
            return None
        if any(writer.progress.version < version for writer in writers):
            return replace(result, waiting=1)
        return delete_outdated(result, output.table, opened, personal=output.personal, dry_run=dry_run)
    except LoadError as error:
        return replace(result, unsupported=error.reason)
