"""Compares ours with the limit: `python -m tests.bench.limit <job>` prints the CPU time of both.

The limit is the work that every loader must do: receive the same fetch answers from the socket, decompress them, and
encode rows that are already Arrow arrays. It parses, checks and plans nothing, and commits nothing.
"""

import json
import shutil
import socket
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kafka_io.compression import CODECS, OutputBuffer
from kafka_io.records import decoder
from pipelines.fetch import slice_file
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.slice_facts import SliceFacts
from resources.progress import Progress
from tests.bench.cases import Job
from tests.bench.comparison import Comparison, Pair, Timer, compare
from tests.bench.peers import ours
from tests.bench.recording import SIZE_BYTES, RecordedSlice, recording, timed_inside

PASSES = 3
"""How often one process measures each slice. The rounds of a bench add up: three rounds are nine passes."""
OURS, LIMIT = "ours", "limit"
"""The folders, below the job's, with the files of the last pass."""
_MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024


class NotFetched(RuntimeError):
    """A slice of ours failed, or has another number of rows than the recorded slice."""


def measure(job: Job, passes: int = PASSES) -> Comparison:
    """Load the topic once to record its slices, then compare both ways to load them.

    Raises:
        NotFetched: a slice of ours failed.
        NotLoaded: the recorded load failed.
    """
    decoder.warm()
    slices = _recorded(job)
    answers = Answers(job.bootstrap)
    inside = Timer()
    pairs = [_pair(recorded, job.folder, str(number), answers, inside) for number, recorded in enumerate(slices)]
    return compare(pairs, passes, inside)


def _recorded(job: Job) -> list[RecordedSlice]:
    slices: list[RecordedSlice] = []

    def fetch_recorded(works: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
        facts = []
        for work in works:
            slices.append(RecordedSlice(work))
            with recording(slices[-1]):
                facts += fetch_here([work], on_progress)
        return facts

    first = replace(job, folder=job.folder.with_name("recorded"))
    ours.load(job.topic, ours.settings(first), ours.no_session, fetch=fetch_recorded)
    return slices


def _pair(recorded: RecordedSlice, folder: Path, name: str, answers: "Answers", inside: Timer) -> Pair:
    ours_folder, limit_folder = folder / OURS / name, folder / LIMIT / name
    rows = sum(batch.num_rows for batch in recorded.batches)
    content = OutputBuffer()

    def prepare() -> None:
        for output in (ours_folder, limit_folder):
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir(parents=True)

    def run_ours() -> None:
        with timed_inside(inside):
            [facts] = fetch_here([replace(recorded.work, table_uri=str(ours_folder))], lambda _done, _total: None)
        if facts.failure or facts.rows != rows:
            raise NotFetched(facts.failure or f"the slice has {facts.rows} rows, the recorded slice has {rows}")

    def run_limit() -> None:
        answers.receive(recorded.requests)
        for codec, records in recorded.compressed:
            content.clear()
            CODECS[codec].decompress_into(records, _MAX_DECOMPRESSED_BYTES, content)
        with slice_file.SliceFile(replace(recorded.work, table_uri=str(limit_folder))) as file:
            for batch in recorded.batches:
                file.write(batch)

    return Pair(records=rows, prepare=prepare, ours=run_ours, limit=run_limit)


class Answers:
    """Sends recorded requests again and receives all answers into the same memory, without parsing them.

    The memory grows to the size of the largest answer in the first, unmeasured pass, which also touches it.
    """

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._address = host, int(port)
        self._space = bytearray(SIZE_BYTES)

    def receive(self, requests: Sequence[bytes]) -> None:
        """Receive the answer of each request. The next request is sent before an answer is received, as in ours."""
        unsent = deque(requests)
        with socket.create_connection(self._address) as connected:
            connected.sendall(unsent.popleft())
            for _ in requests:
                size = int.from_bytes(self._fill(connected, SIZE_BYTES), "big")
                if unsent:
                    connected.sendall(unsent.popleft())
                self._fill(connected, size)

    def _fill(self, connected: socket.socket, size: int) -> bytes:
        """Receive `size` bytes; return the first four of them."""
        if len(self._space) < size:
            self._space = bytearray(size)
        unfilled = memoryview(self._space)[:size]
        while unfilled:
            count = connected.recv_into(unfilled)
            if not count:
                raise ConnectionError("the broker closed the connection")
            unfilled = unfilled[count:]
        return bytes(self._space[:SIZE_BYTES])


def main() -> None:
    """Compare ours with the limit, and print the comparison."""
    measure(Job.of(json.loads(sys.argv[1]))).write()


if __name__ == "__main__":
    main()
