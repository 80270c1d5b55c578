"""Wall seconds, CPU seconds and memory that this process and all processes below it use (Linux)."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.printed import PrintedResult

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(PrintedResult):
    """The time and memory that a load used.

    `peak_mb` adds up the peak of each process, so it counts pages that forked workers share more than once. `worker_mb`
    is the largest peak of a Python process below this one; 0 if there is none.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    worker_mb: float = 0.0


@dataclass(slots=True)
class Clock:
    """The usage of a measured block, which is set when the block has ended."""

    usage: Usage | None = None


@contextmanager
def measured() -> Iterator[Clock]:
    """Measure the block, in this process and in all processes below it."""
    clock = Clock()
    process = os.getpid()
    cpu, wall = tree_cpu_s(process), time.monotonic()
    yield clock
    wall = time.monotonic() - wall
    clock.usage = Usage(
        wall_s=wall,
        cpu_s=tree_cpu_s(process) - cpu,
        peak_mb=tree_peak_mb(process),
        worker_mb=largest_worker_mb(process),
    )


def tree_cpu_s(root: int) -> float:
    """User and system time of `root` and its descendants. An ended process counts once its parent has waited for it."""
    children, spent = _processes()
    return sum(spent.get(process, 0) for process in _descendants(root, children)) / _TICKS


def tree_peak_mb(root: int) -> float:
    """The sum of the peak resident sets of `root` and its living descendants."""
    children, _ = _processes()
    return sum(map(_peak_kb, _descendants(root, children))) / 1024


def largest_worker_mb(root: int) -> float:
    """The peak memory in MB of the running Python process below `root` that needed most; 0 if none runs."""
    children, _ = _processes()
    workers = [process for process in _descendants(root, children) if process != root and _is_python(process)]
    return max(map(_peak_kb, workers), default=0) / 1024


def _is_python(process: int) -> bool:
    try:
        return (_PROC / str(process) / "comm").read_text().startswith("python")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _processes() -> tuple[Mapping[int, list[int]], Mapping[int, int]]:
    """The children of each process, and the clock ticks that each process used."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    spent: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has just ended
        # proc(5): the name in brackets can contain any character. The fields after it are state, parent, and so on;
        # fields 14 to 17 of the line are utime, stime, cutime and cstime.
        fields = text.rpartition(")")[2].split()
        process = int(folder.name)
        children[int(fields[1])].append(process)
        spent[process] = sum(map(int, fields[11:15]))
    return children, spent


def _descendants(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    unvisited = [root]
    while unvisited:
        process = unvisited.pop()
        yield process
        unvisited += children.get(process, [])


def _peak_kb(process: int) -> int:
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
