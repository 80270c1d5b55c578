"""The result of the last proof of each topic's table, kept in the lake, so that other processes can show it.

`penstock verify` and the checks of Dagster write one small file per topic, `<lake>/<cluster>/_penstock/last_proofs/
<encoded topic>.json` (see TopicRecords). A proof belongs to the version of the table that existed then: its time says
how old it is.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import time_ns
from typing import Self

from kafka_io.errors import LocatedError
from pipelines.reports.topic_records import TopicRecords
from pipelines.table.lake_table import LakeTable
from pipelines.verify.verify import Proof, proof_of
from resources.stores.lake import Lake, lake_errors, tables_at_once

_FOLDER = "last_proofs"


def _now_ms() -> int:
    return time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LastProof:
    """The result of the last proof of a table.

    Args:
        time_ms: when the proof began, in ms since 1970.
        seconds: how long it took.
        proven: whether the table holds what its ledger says, and each row once.
        deep: whether the rows were also compared with the records of the brokers.
        problems: the number of problems.
        rows: the number of different rows.
        missing: how many rows fewer there are than the commits counted.
        duplicates: the number of rows that are there again.
        gaps: the number of offsets without a row, by cause.
    """

    time_ms: int
    seconds: float
    proven: bool
    deep: bool = False
    problems: int = 0
    rows: int = 0
    missing: int = 0
    duplicates: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, proof: Proof, *, time_ms: int, seconds: float, deep: bool = False) -> Self:
        """The part of a proof that is kept: sums over its partitions."""
        partitions = proof.partitions
        return cls(
            time_ms=time_ms,
            seconds=seconds,
            proven=proof.proven,
            deep=deep,
            problems=len(proof.problems),
            rows=sum(partition.rows for partition in partitions),
            missing=sum(partition.missing for partition in partitions),
            duplicates=sum(partition.duplicates for partition in partitions),
            gaps=dict(sum((Counter(partition.gaps) for partition in partitions), Counter())),
        )


class LastProofs:
    """The last proofs of the topics of one cluster."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._records = TopicRecords(lake, cluster, _FOLDER, LastProof)

    def prove(
        self, table: LakeTable, check: Callable[[LakeTable], Proof], *, deep: bool = False
    ) -> tuple[Proof, Sequence[str]]:
        """Prove a table with a check such as `verify`, and keep the result; returns it with warnings."""
        began_ms = _now_ms()
        proof = proof_of(table, check)
        seconds = (_now_ms() - began_ms) / 1000
        try:
            with lake_errors(self._records.lake.root):
                self._records.write(proof.topic, LastProof.of(proof, time_ms=began_ms, seconds=seconds, deep=deep))
        except LocatedError as failure:
            return proof, (f"`penstock metrics` may show an old proof of this table: {failure}",)
        return proof, ()

    def prove_all(
        self, tables: Sequence[LakeTable], check: Callable[[LakeTable], Proof]
    ) -> Iterator[tuple[Proof, Sequence[str]]]:
        """The same for several tables at a time; the results have the order of the tables."""
        with ThreadPoolExecutor(tables_at_once(self._records.lake.root)) as provers:
            yield from provers.map(lambda table: self.prove(table, check), tables)

    def read(self) -> dict[str, LastProof]:
        """The last proof of each topic that has one. Damaged files are left out.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        with lake_errors(self._records.lake.root):
            return {topic: proof for topic, proof in self._records.read_all().items() if proof is not None}
