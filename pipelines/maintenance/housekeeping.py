"""The housekeeping of one topic: everything that `penstock clean` and Dagster's clean job do with its tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pipelines.maintenance.clean import CleanResult, clean
from pipelines.maintenance.clean_state import clean_state
from pipelines.maintenance.erased_files import ErasedFiles, finish_erasures
from pipelines.maintenance.retire import RetiredFiles, retire
from pipelines.table.lake_table import LakeTable
from resources.settings.settings import Settings


@dataclass(slots=True)
class TopicHousekeeping:
    """The results of the steps; in a dry run, of what they would do. A step that fails keeps the results before it.

    Attributes:
        cleaned: the result for the table of the topic; None before its step.
        state: the same for the state table; None too if the settings name none.
        erased: the files that were deleted because of erasures, of both tables.
        retired: the files with old rows that left the table; None too if the topic has no `keep_days`.
    """

    cleaned: CleanResult | None = None
    state: CleanResult | None = None
    erased: Sequence[ErasedFiles] = field(default_factory=tuple)
    retired: RetiredFiles | None = None

    def run(self, table: LakeTable, settings: Settings, *, keep: timedelta, dry_run: bool) -> None:
        """Do it. `keep` is how long files stay that no version names any more.

        Raises:
            LoadError: a step failed.
        """
        rules, options = settings.housekeeping, settings.options_of(str(table.where.topic))
        self.cleaned = clean(table, keep=keep, target_bytes=rules.file_bytes, dry_run=dry_run)
        if options.state is not None:
            self.state = clean_state(table, keep=keep, target_bytes=rules.file_bytes, dry_run=dry_run)
        self.erased = finish_erasures(table, older_than=timedelta(days=rules.erase_days), dry_run=dry_run)
        # It comes last: a table whose rows cannot be retired is cleaned, and its erasures end.
        if options.rows_since:
            self.retired = retire(table, options.rows_since, dry_run=dry_run)
