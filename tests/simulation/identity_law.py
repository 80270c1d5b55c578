"""The law that a table holds one topic, and of each partition one log, as far as anything shows it.

A run can know that a topic or a log is not the one of its table from the ids that the registry shows and from leader
epochs. The bounds of the logs, and the last message before each cursor, show it as well. Where nothing of this
contradicts the table, nobody can know it. There is no other excuse: each run is judged by what it was answered, and
each log by what it held when it was read.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition, TopicIds
from pipelines.ledger.committed_range import EXPIRED
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from resources.settings.choices import Choices
from tests.simulation.broken import require
from tests.simulation.brokers import Answers, SimCluster
from tests.simulation.content_law import ContentLaw
from tests.simulation.sim_log import SimLog
from tests.simulation.store import SimStore
from tests.simulation.workers import Read

Reads = Mapping[BrokerPartition, Sequence[Read]]
LastMessages = Mapping[BrokerPartition, tuple[int, int]]
"""The offset and the payload of the last message that loads have read before each cursor."""


@dataclass(slots=True, kw_only=True)
class IdentityLaw:
    """Checks each commit against what its run could know.

    Args:
        answers: what each run was answered, by its id.
        last: the last messages after each commit, by its id.
        choices: the choices of every run.
        content: the law about other records than those that were read.
    """

    cluster: SimCluster
    store: SimStore
    content: ContentLaw
    answers: dict[str, Answers] = field(default_factory=dict)
    last: dict[str, LastMessages] = field(default_factory=dict)
    choices: Mapping[str, Choices] = field(default_factory=dict)

    def note_read(self) -> None:
        """Note which logs contradict the table now, just after a slice of the present run was read.

        The run compares the logs with the table after the last slice, and then commits. So it could see what
        contradicts the table both now and when the commit lands.
        """
        answers = self.cluster.answers
        answers.contradicting, answers.ids_after_read = {}, self.cluster.shown_ids
        answers.logs_after_read = _with_losses(self.cluster.logs.items())
        if answers.bounds:
            planned_on = self._entry(answers.bounds[-1].version)
            if planned_on:
                answers.contradicting = dict(self._contradicting_logs(planned_on, answers))

    def note_bounds(self) -> None:
        """Note which logs contradict the table when a step of the present run begins, before it compares them."""
        answers = self.cluster.answers
        version = answers.bounds[-1].version if answers.bounds else 0
        answers.planned_on_other, answers.other_records = {}, {}
        if planned_on := self._entry(version):
            answers.planned_on_other = _with_losses(self._contradicting_logs(planned_on, answers))
            answers.other_records = _with_losses(self.content.other_logs(version, planned_on))

    def _entry(self, version: int) -> LedgerEntry | None:
        return next((entry for _, entry in self.store.logged_entries(version)), None)

    def _contradicting_logs(
        self, planned_on: LedgerEntry, answers: Answers
    ) -> Iterable[tuple[BrokerPartition, SimLog]]:
        """The logs that do not hold the last message of the table. Only what the run asked about counts."""
        bounds = answers.bounds[-1].bounds
        for id_, (offset, payload) in self.last[planned_on.commit].items():
            log = self.cluster.logs.get(id_)
            # The run compares a message only if it is in the log, according to the bounds that it was answered.
            if log is None or id_ not in bounds or bounds[id_].earliest > offset:
                continue
            in_log = log.earliest <= offset < log.latest
            if in_log and self._is_other_message(log, offset, payload):
                yield id_, log

    def _is_other_message(self, log: SimLog, offset: int, payload: int) -> bool:
        """Whether the log shows another message. One that was compacted, or cannot be read, shows nothing.

        In 0.7 no message is compacted, so bytes that are not the message are another one.
        """
        if self.cluster.era.in_bytes:
            return log.records.get(offset) != payload or any(log.damages_in(offset, offset + 1))
        return log.records.get(offset, payload) != payload and not any(log.damages_in(offset, offset + 1))

    def check(
        self, entry: LedgerEntry, before: LedgerEntry | None, reads: Reads, lives: Mapping[BrokerPartition, str]
    ) -> None:
        """Check a commit that has just landed.

        Args:
            entry: the commit.
            before: the commit before it.
            reads: the reads of its new ranges.
            lives: the incarnation from which each partition of its topic was read before.

        Raises:
            Broken: the run could know that it read another topic, or another log, than its table holds.
        """
        answers = self.answers.get(entry.run)
        planned_on = self._planned_on(entry, answers) if answers else None
        self._check_cluster(entry, planned_on, reads)
        if answers and any(reads.values()):
            self._check_read(entry, answers)
        if answers and planned_on and planned_on.topic == entry.topic and any(reads.values()):
            self._check_ids(entry, before, planned_on, answers)
            self._check_content(entry, planned_on, answers, reads.keys())
            if not planned_on.state.ids.topic_id:
                # A log that was only truncated does not keep the other partitions from being loaded (fault N07).
                others = {id_ for id_, life in lives.items() if life != self.cluster.incarnation}
                self._check_logs(entry, planned_on, answers, reads.keys(), others)
                self._check_expired(entry, answers)
        self.last[entry.commit] = dict(self._last_messages(entry, before, reads))

    def _check_cluster(self, entry: LedgerEntry, planned_on: LedgerEntry | None, reads: Reads) -> None:
        """Check that the rows are of the cluster whose id the commit records, and that it is the table's (fault P09).

        The user can choose to continue the table with another cluster (fault N17).
        """
        known = entry.state.ids.cluster_id
        for read in (read for part in reads.values() for read in part):
            require(read.cluster_id == known, f"{entry.run} read {read.cluster_id}, and committed it as {known}")
        before = planned_on.state.ids.cluster_id if planned_on else ""
        chosen = any(choice.setting == "on_cluster_changed" for choice in entry.choices)
        require(
            chosen or not reads or entry.kind is not CommitKind.LOAD or before in {"", known},
            f"{entry.run} continued a table of {before} with {known}",
        )

    def _check_content(
        self, entry: LedgerEntry, planned_on: LedgerEntry, answers: Answers, read: AbstractSet[BrokerPartition]
    ) -> None:
        """Check that a run does not continue after messages that the log did not have when the run compared it.

        This holds whatever ids the topic has (faults A01, A02). A leader epoch below the one of the table needs a
        choice (fault B02).
        """
        bounds = answers.bounds[-1].bounds
        is_load = entry.kind is CommitKind.LOAD  # a replay compares the logs after it has read
        for id_ in read & bounds.keys() if is_load else ():
            epoch = planned_on.state.epochs.get(id_, -1)
            is_chosen = self.choices[entry.run].on_truncated == "rewind"
            require(
                is_chosen or not 0 <= bounds[id_].epoch < epoch,
                f"{entry.run} was answered an epoch below {epoch} of {id_}, and committed",
            )
        now = dict(self._contradicting_logs(planned_on, answers))
        for id_ in now.keys() & read - answers.silent if is_load else ():
            same_since = answers.planned_on_other.get(id_) == (now[id_], now[id_].losses)
            require(not same_since, f"{entry.run} continued {id_} after a message that its log did not have then")
        # A run that has taken rows back plans on its cut.
        if is_load and planned_on is self._entry(answers.bounds[-1].version):
            logs = self.cluster.logs
            others = {
                id_
                for id_, (log, losses) in answers.other_records.items()
                if id_ in read and logs.get(id_) is log and log.losses == losses
            }
            require(not others, f"{entry.run} continued {sorted(others)} after records that its logs had lost")

    def _check_read(self, entry: LedgerEntry, answers: Answers) -> None:
        """Check that the topic which was read is the one whose ids the commit records."""
        # The run has to ask again after it has read: what was shown from then until now, it could see.
        recorded = entry.state.ids
        could_see = all(_are_of_two_topics(recorded, ids) for ids in (answers.ids_after_read, self.cluster.shown_ids))
        require(not could_see, f"{entry.run} read {answers.ids_after_read}, and committed it as {recorded}")

    def _planned_on(self, entry: LedgerEntry, answers: Answers) -> LedgerEntry | None:
        """The entry on which the run planned the commit. What rivals have added since cannot be asked any more.

        A run that has taken back rows plans on this cut, although it asked the brokers before it.
        """
        if not answers.bounds:
            return None
        newest, asked = len(self.store.versions) - 2, answers.bounds[-1].version
        own = (older for _, older in self.store.logged_entries(newest, after=asked) if older.run == entry.run)
        return next(own, None) or self._entry(asked)

    def _check_ids(
        self, entry: LedgerEntry, before: LedgerEntry | None, planned_on: LedgerEntry, answers: Answers
    ) -> None:
        known = planned_on.state.ids
        for incarnation, shown in answers.topics_of_step:
            require(
                not _are_of_two_topics(known, shown),
                f"{entry.run} was shown {shown} of {incarnation}, and committed to a table of {known}",
            )
        kept, topic_ids = entry.state.ids, [ids for _, ids in answers.topics_of_step]
        known_before = before.state.ids if before else TopicIds()
        # The table learns a topic id when all its logs were compared, because nothing else is compared after that. A
        # run that others have overtaken, if only with a compaction, leaves it to the next one.
        is_first = answers.bounds[-1].version == len(self.store.versions) - 2
        harmed = answers.silent | answers.lied | answers.contradicting.keys()
        has_cut = planned_on.kind is CommitKind.CUT
        learns_topic_id = (
            entry.kind is CommitKind.LOAD
            and is_first
            and not has_cut
            and self._may_compare_all(planned_on, answers, harmed)
        )
        knew_topic_id = known_before.topic_id or (learns_topic_id and all(ids.topic_id for ids in topic_ids))
        # A run that takes rows back has compared the logs before that. Another run compares them after the cut.
        may_learn = not (has_cut and planned_on.run == entry.run) and self._may_compare_all(planned_on, answers)
        require(
            not kept.topic_id or bool(known_before.topic_id) or may_learn,
            f"{entry.run} recorded the topic id before it had compared all logs",
        )
        knew_zxid = known.created_zxid or all(ids.created_zxid for ids in topic_ids)
        require(bool(kept.topic_id) or not knew_topic_id, f"{entry.run} knew the topic id, and did not record it")
        require(bool(kept.created_zxid) or not knew_zxid, f"{entry.run} knew the zxid, and did not record it")

    @staticmethod
    def _may_compare_all(
        planned_on: LedgerEntry, answers: Answers, harmed: AbstractSet[BrokerPartition] = frozenset()
    ) -> bool:
        """Whether a run was answered that each partition of its table has a log that ends at the cursor or after it.

        Truncations and failures can keep it from the comparison of the messages; `harmed` are partitions with those.
        """
        bounds = answers.bounds[-1].bounds
        return all(
            id_ in bounds and id_ not in harmed and bounds[id_].latest >= cursor
            for id_, (_, cursor) in planned_on.covered.items()
        )

    def _check_logs(
        self,
        entry: LedgerEntry,
        planned_on: LedgerEntry,
        answers: Answers,
        read: AbstractSet[BrokerPartition],
        others: AbstractSet[BrokerPartition],
    ) -> None:
        """Check the logs of the partitions that were read, and of others that show what the topic is."""
        judged = read | (others - answers.silent)
        bounds = {id_: bound for id_, bound in answers.bounds[-1].bounds.items() if id_ in judged}
        for id_, epoch in planned_on.state.epochs.items():
            require(
                id_ not in bounds or not 0 <= bounds[id_].epoch < epoch,
                f"{entry.run} was answered an epoch below {epoch} of partition {id_}, and committed",
            )
        # A log that is only shorter may be truncated: this says nothing about the topic of the other partitions.
        # A replay may read what lies before the end of an epoch, which leaders know exactly.
        by_epochs = planned_on.state.epochs.keys() if entry.kind is CommitKind.REPLAY else set()
        for id_ in self.last[planned_on.commit].keys() & bounds.keys() & read - by_epochs:
            require(
                bounds[id_].latest >= planned_on.covered[id_][1],
                f"{entry.run} was answered that the log of {id_} ends at {bounds[id_].latest}, and committed after it",
            )
        # A log that was created again or truncated since the run compared it says nothing about what the run saw.
        now = dict(self._contradicting_logs(planned_on, answers))
        same = [
            id_
            for id_, log in now.items()
            if id_ in judged and log is answers.contradicting.get(id_) and not self._hid_all_rows(id_, answers)
        ]
        require(
            not same,
            f"{entry.run} continued a table whose last messages are not in the logs of {', '.join(map(str, same))}",
        )

    def _hid_all_rows(self, id_: BrokerPartition, answers: Answers) -> bool:
        """Whether the run could compare no message, because the log was too short for the last one, and for all rows.

        Rows that were erased or retired are not there either. So such a log looks like one that was truncated.
        """
        version, bound = answers.bounds[-1].version, answers.bounds[-1].bounds[id_]
        known = self._entry(version)
        assert known is not None
        rows = (row for rows in self.store.versions[version].files.values() for row in rows)
        offsets = [row.offset for row in rows if row.id == id_]
        return bound.latest <= self.last[known.commit][id_][0] and not any(
            bound.earliest <= offset < bound.latest for offset in offsets
        )

    def _check_expired(self, entry: LedgerEntry, answers: Answers) -> None:
        """Check that no log has records before the end of what a load skips as expired: it was created again.

        A log whose bounds were wrong, or that has changed since the last read of the run, says nothing (fault P11).
        """
        now = _with_losses(self.cluster.logs.items())
        unchanged = {id_ for id_, log in answers.logs_after_read.items() if now.get(id_) == log} - answers.lied
        skipped = [committed for committed in entry.ranges if EXPIRED in committed.gaps]
        for committed in skipped if entry.kind is CommitKind.LOAD else ():
            records = self.cluster.logs[committed.partition].records if committed.partition in unchanged else ()
            stop = committed.offsets.stop
            require(
                min(records, default=stop) >= stop,
                f"{entry.run} skipped {committed} as expired, but the log has records before its end",
            )

    def _last_messages(
        self, entry: LedgerEntry, before: LedgerEntry | None, reads: Reads
    ) -> Iterable[tuple[BrokerPartition, tuple[int, int]]]:
        """The last messages after an entry: those of a load are added, and those after a cursor are gone."""
        base: LastMessages = self.last[before.commit] if before and before.topic == entry.topic else {}
        if entry.target is not None:
            restored = self._entry(entry.target)
            base = self.last[restored.commit] if restored else {}
        last = dict(base)
        for id_, partition_reads in reads.items() if entry.kind is CommitKind.LOAD else ():
            newest = max((item for read in partition_reads for item in read.payloads.items()), default=None)
            if newest and (id_ not in last or last[id_][0] < newest[0]):
                last[id_] = newest
        for id_, message in last.items():
            if id_ in entry.covered and message[0] < entry.covered[id_][1]:
                yield id_, message

    def may_look_recreated(self, answers: Answers, entry: LedgerEntry, reads: Reads) -> bool:
        """Whether a run may report its topic as created again, although it is the one of the table.

        Without a topic id, a log that was truncated since it was read looks like another one, and so does one about
        whose end a broker lied to this run. So does the same topic if the ledger has ids of a former one.
        """
        if shows_other_ids(answers, entry) or self._hides_what_was_lost(answers):
            return True
        if entry.state.ids.topic_id and self.cluster.era.has_ids:
            return False
        changed = (
            self._has_changed(log, read) for id_, log in self.cluster.logs.items() for read in reads.get(id_, ())
        )
        return bool(answers.lied & entry.covered.keys()) or any(changed)

    def _has_changed(self, log: SimLog, read: Read) -> bool:
        """Whether the log was truncated since the read. In 0.7 a damaged message looks like another one too."""
        was_cut = any(cut.tick > read.shown and cut.offset < read.stop for cut in (*log.cuts, *log.restored))
        return was_cut or (self.cluster.era.in_bytes and any(log.damages_in(read.start, read.stop)))

    def _hides_what_was_lost(self, answers: Answers) -> bool:
        """Whether nothing shows where a log lost records whose epoch its leader does not know, or seems to have lost.

        A typed table has no bytes of messages to compare, and compaction may have removed some of them.
        """
        if not self.cluster.compacts or self.cluster.values is None:
            return False
        return bool(answers.lied) or any(log.cuts or log.restored for log in self.cluster.logs.values())

    def has_nothing_in_common(self, rows: Mapping[BrokerPartition, Mapping[int, int]], answers: Answers) -> bool:
        """Whether a log has none of the rows of its table which it could still have when the run asked for its bounds.

        Truncation can do that, and in 0.7 damage.
        """
        bounds = answers.bounds[-1].bounds
        return self._hides_what_was_lost(answers) or any(
            self._has_none_of(self.cluster.logs[id_], payloads, bounds[id_].earliest)
            for id_, payloads in rows.items()
            if id_ in self.cluster.logs and id_ in bounds
        )

    def _has_none_of(self, log: SimLog, payloads: Mapping[int, int], earliest: int) -> bool:
        comparable = {offset: payload for offset, payload in payloads.items() if offset >= earliest}
        # If a rewind has restored rows that the log lost before, they may lie below others that it has. A search for
        # the offset at which a log diverged expects common rows first, and may not see the others.
        first = min((offset for offset in comparable if offset in log.records or offset < log.earliest), default=None)
        is_common = first is not None and self._had(log, first, comparable[first])
        # If another writer has deleted all rows of the partition, only the last message is left to compare.
        return bool(comparable or not payloads) and not is_common and bool(log.cuts or self.cluster.era.in_bytes)

    def _had(self, log: SimLog, offset: int, payload: int) -> bool:
        """Whether the log had the record. One that has expired since was there, unless the log was truncated below."""
        if offset < log.earliest:
            return not any(cut.offset <= offset for cut in log.cuts)
        is_damaged = self.cluster.era.in_bytes and any(log.damages_in(offset, offset + 1))
        return log.records.get(offset) == payload and not is_damaged


def _with_losses(logs: Iterable[tuple[BrokerPartition, SimLog]]) -> dict[BrokerPartition, tuple[SimLog, int]]:
    """The logs, each with the number of its losses."""
    return {id_: (log, log.losses) for id_, log in logs}


def shows_other_ids(answers: Answers, entry: LedgerEntry) -> bool:
    """Whether a run was shown ids that contradict those of the entry."""
    return any(_are_of_two_topics(entry.state.ids, shown) for _, shown in answers.topics)


def _are_of_two_topics(known: TopicIds, shown: TopicIds) -> bool:
    """Whether ids contradict each other. The topic id decides, if both have one."""
    for known_id, shown_id in ((known.topic_id, shown.topic_id), (known.created_zxid, shown.created_zxid)):
        if known_id and shown_id:
            return known_id != shown_id
    return False
