"""Measures the memory and the time that decoding needs.

`python -m tests.fuzz.cost CAP FILE...` prints both for each file. Names of files with messages of 0.7 begin with 07.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kafka_io.errors import KafkaIOError
from kafka_io.records import decoder
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.v07 import decoder as v07_decoder

# On Linux a process can reset and read its memory peak.
_FORGET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The CPU time of a piece of work in seconds, and the growth of its memory in bytes."""

    seconds: float
    grown_bytes: int


def cost_of(work: Callable[[], None]) -> Cost:
    """Run `work` and measure it."""
    before = _forget_peak()
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    return Cost(seconds=seconds, grown_bytes=max(_peak() - before, 0))


def read_log(data: bytes, limits: DecodeLimits) -> None:
    """Decode a log of formats 0 to 2 and drop its rows; errors in the log are ignored."""
    with suppress(KafkaIOError):
        for _ in decoder.decode(data, RequestedOffsets(start=0), limits=limits):
            pass


def read_set(data: bytes, limits: DecodeLimits) -> None:
    """Decode a message set of 0.7 and drop its rows; errors in it are ignored."""
    with suppress(KafkaIOError):
        for _ in v07_decoder.decode_v07(data, base=0, limits=limits):
            pass


def _forget_peak() -> int:
    """Reset the memory peak; returns the memory in use, in bytes.

    If the peak cannot be reset, returns the peak itself.
    """
    if not _FORGET.exists():
        return _peak()
    _FORGET.write_text("5")
    return _told("VmRSS")


def _peak() -> int:
    if _FORGET.exists():
        return _told("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _told(field: str) -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def _tell(path: Path, limits: DecodeLimits) -> None:
    read = read_set if path.name.startswith("07") else read_log
    cost = cost_of(lambda: read(path.read_bytes(), limits))
    sys.stdout.write(f"{path.name} {cost.seconds:.3f} {cost.grown_bytes}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Print the name, the seconds and the bytes of memory of each file."""
    cap, *paths = arguments
    limits = DecodeLimits(max_decompressed_bytes=int(cap), batch_bytes=int(cap) // 4)
    decoder.warm()
    v07_decoder.warm()
    for path in paths:
        # Memory that one input released must not be reused by the next.
        if not (child := os.fork()):
            _tell(Path(path), limits)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
