"""Several threads can use a type for the first time at the same time."""

import subprocess
import sys

import msgspec
import pytest

from kafka_io.typed_json import convert, decode_json

# Without the lock, this program ended with a segmentation fault in each of twenty attempts.
_PROGRAM = """
import sys, threading
from dataclasses import make_dataclass
import msgspec
from kafka_io import typed_json

use = {"convert": typed_json.convert, "msgspec": msgspec.convert}[sys.argv[1]]
sys.setswitchinterval(1e-6)
for number in range(150):
    inner = make_dataclass(f"Inner{number}", [(f"field_{name}", "int") for name in range(20)])
    outer = make_dataclass(f"Outer{number}", [(f"field_{name}", inner | None, None) for name in range(20)])
    value = {"field_0": {f"field_{name}": name for name in range(20)}}
    barrier = threading.Barrier(6)
    def first_use():
        barrier.wait()
        assert use(value, outer).field_0.field_7 == 7
    threads = [threading.Thread(target=first_use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.slow
def test_threads_can_use_a_type_first_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, "convert"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_values_are_checked() -> None:
    assert convert(["1", "2"], list[str]) == ["1", "2"]
    assert decode_json(b'{"a": 1}', dict[str, int]) == {"a": 1}
    with pytest.raises(msgspec.ValidationError):
        convert([1], list[str])
    with pytest.raises(msgspec.DecodeError):
        decode_json("{", dict[str, int])
