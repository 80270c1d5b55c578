"""Decodes mutated logs and values for any length of time: `make fuzz SECONDS=3600 SEED=7`.

An input fails if it breaks a law, if decoding it takes more than a second, or if memory grows by more than three times
its size plus the limit. A short schema can have many columns, so a schema may take more memory. An input that fails is
saved, and the report names the seed that produces it again. The run ends after the given time, or at the first failure.
"""

import argparse
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_io.records import decoder
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.v07 import decoder as v07_decoder
from kafka_io.values.avro import decoder as avro_decoder
from kafka_io.values.protobuf import decoder as protobuf_decoder
from tests.fuzz.avro_changes import check_changes, mutated_changes, read_changes
from tests.fuzz.avro_values import check_values, mutated_values, read_values
from tests.fuzz.connect_tables import check_connect, seed_of_changes
from tests.fuzz.cost import Cost, cost_of, read_log, read_set
from tests.fuzz.debezium_values import check_events, mutated_events, read_events
from tests.fuzz.framed_json import check_framed_documents, mutated_framed_documents, read_framed_documents
from tests.fuzz.frames import check_frames, mutated_frames, read_all
from tests.fuzz.inferred_columns import check_samples, mutated_samples, read_samples
from tests.fuzz.json_values import check_documents, mutated_documents, read_documents
from tests.fuzz.laws import CAP, check_log, check_set
from tests.fuzz.logs import mutated_log
from tests.fuzz.odd_avro_tables import check_odd_avro, odd_avro_loads
from tests.fuzz.odd_protobuf_tables import check_odd_protobuf, odd_protobuf_loads
from tests.fuzz.odd_tables import check_odd_loads, odd_loads, read_nothing
from tests.fuzz.plain_rows import check_plain_rows, seed_of_rows
from tests.fuzz.protobuf_values import check_messages, mutated_messages, read_messages
from tests.fuzz.schema_texts import check_schema, mutated_schema, read_schema
from tests.fuzz.sets_v07 import mutated_set
from tests.fuzz.sized import joined

_LIMITS = DecodeLimits(max_decompressed_bytes=CAP, batch_bytes=CAP)
_SLOWEST_SECONDS = 1.0
_MOST_TIMES = 3
# Memory that grows beside that of the decoder: Python allocates its own objects in arenas of 1 MiB, and the pages of
# libraries that the kernel took back during the hours before return when their code runs again.
_OTHER_BYTES = 2 << 20
_SCHEMA_BYTES = 256 << 20
_ALARM_SECONDS = 30
_PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of input: `make` creates one from random numbers, `check` checks the laws, `read` only decodes.

    `more_bytes` is the memory that an input may take in addition to what its size allows.
    """

    name: str
    make: Callable[[random.Random], bytes]
    check: Callable[[bytes, random.Random], str]
    read: Callable[[bytes, DecodeLimits], None]
    more_bytes: int = 0


LOG = Kind(name="log", make=mutated_log, check=check_log, read=read_log)
SET = Kind(name="set", make=mutated_set, check=check_set, read=read_set)
AVRO = Kind(name="avro", make=mutated_values, check=check_values, read=read_values)
JSON = Kind(name="json", make=mutated_documents, check=check_documents, read=read_documents)
DEBEZIUM = Kind(name="debezium", make=mutated_events, check=check_events, read=read_events)
FRAMES = Kind(name="frames", make=mutated_frames, check=check_frames, read=read_all)
PROTOBUF = Kind(name="protobuf", make=mutated_messages, check=check_messages, read=read_messages)
CHANGES = Kind(name="changes", make=mutated_changes, check=check_changes, read=read_changes)
FRAMED_JSON = Kind(
    name="framed-json", make=mutated_framed_documents, check=check_framed_documents, read=read_framed_documents
)
SAMPLES = Kind(name="samples", make=mutated_samples, check=check_samples, read=read_samples)
SCHEMAS = Kind(name="schema", make=mutated_schema, check=check_schema, read=read_schema, more_bytes=_SCHEMA_BYTES)
TABLES = Kind(name="tables", make=odd_loads, check=check_odd_loads, read=read_nothing)
AVRO_TABLES = Kind(name="avro-tables", make=odd_avro_loads, check=check_odd_avro, read=read_nothing)
PROTOBUF_TABLES = Kind(name="protobuf-tables", make=odd_protobuf_loads, check=check_odd_protobuf, read=read_nothing)
CONNECT_TABLES = Kind(name="connect-tables", make=seed_of_changes, check=check_connect, read=read_nothing)
PLAIN_ROWS = Kind(name="plain-rows", make=seed_of_rows, check=check_plain_rows, read=read_nothing)
KINDS = (
    *(LOG, LOG, SET, AVRO, CHANGES, JSON, FRAMED_JSON, DEBEZIUM, SAMPLES, FRAMES, PROTOBUF, SCHEMAS),
    *(TABLES, AVRO_TABLES, PROTOBUF_TABLES, CONNECT_TABLES, PLAIN_ROWS),
)
"""The kinds, each as often as it is tried."""


class Failed(Exception):
    """An input broke a law."""


def attempt(seed: int, folder: Path) -> tuple[str, Cost]:
    """Try the input of this seed; returns the kind of input and the outcome as text, and the cost of decoding.

    Raises:
        Failed: the input broke a law. It is saved in `folder`.
    """
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    data = kind.make(rng)
    try:
        with _alarm():
            cost = cost_of(lambda: kind.read(data, _LIMITS))
        assert cost.seconds <= _SLOWEST_SECONDS, f"decoding took {cost.seconds:.2f} s"
        assert cost.grown_bytes <= _MOST_TIMES * (len(data) + CAP) + _OTHER_BYTES + kind.more_bytes, (
            f"decoding took {cost.grown_bytes} bytes of memory"
        )
        with _alarm():
            ended = kind.check(data, rng)
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        saved = folder / f"{kind.name}-{seed}.bin"
        saved.write_bytes(data)
        raise Failed(f"seed {seed}: {type(error).__name__}: {error}; its {len(data)} bytes are in {saved}") from error
    return f"{kind.name} {ended}", cost


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise TimeoutError in the block after _ALARM_SECONDS of CPU time: a decoder or oracle may never end.

    On a busy machine a block can wait for a processor for longer than that.
    """

    def ring(_number: int, _frame: object) -> None:
        raise TimeoutError(f"no end after {_ALARM_SECONDS} s of CPU time")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, _ALARM_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(seconds: float, seed: int, folder: Path) -> int:
    """Try one seed after the other, and print the number of inputs by outcome; returns the number of all inputs.

    Raises:
        Failed: see `attempt`.
    """
    decoder.warm()
    v07_decoder.warm()
    avro_decoder.warm()
    protobuf_decoder.warm()
    read_documents(b"{}", _LIMITS)  # compiles
    read_all(joined([b""]), _LIMITS)
    start = reported = time.monotonic()
    outcomes: Counter[str] = Counter()
    slowest, largest = 0.0, 0
    while (now := time.monotonic()) - start < seconds:
        ended, cost = attempt(seed + outcomes.total(), folder)
        outcomes[ended] += 1
        slowest, largest = max(slowest, cost.seconds), max(largest, cost.grown_bytes)
        if now - reported >= _PROGRESS_SECONDS:
            reported = now
            _say(
                f"{now - start:.0f} s, {outcomes.total()} inputs, slowest {slowest:.3f} s, most memory {largest} bytes"
            )
    _say(
        f"{outcomes.total()} inputs from seed {seed}: "
        + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
    )
    return outcomes.total()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, default=Path(".cache/fuzz"), help="where an input that fails is saved")
    options = parser.parse_args()
    try:
        run(options.seconds, options.seed, options.folder)
    except Failed:
        sys.exit(traceback.format_exc())


if __name__ == "__main__":
    main()
