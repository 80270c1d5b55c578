"""Progress bars on stderr: how much is done, how fast, and how long it will still take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TaskProgressColumn, TextColumn
from rich.text import Text

from pipelines.cli.output import terminal
from pipelines.cli.output.log_lines import is_json, printable, safe
from resources.quantities import count, duration

_BAR_COLUMNS = 20
_NAME_SHARE = 3  # a name takes at most this part of the width of the terminal


class _Amounts(ProgressColumn):
    """The text after a bar: `12,000 of 40,000, 3,500/s, 8 s left`. The rate and the time are missing at the start."""

    def render(self, task: Task) -> Text:
        """The text of this column for a task."""
        if task.total is None:
            return Text()
        parts = [f"{count(task.completed)} of {count(task.total)}"]
        parts += [f"{count(float(task.speed))}/s"] if task.speed else []
        parts += [f"{duration(task.time_remaining)} left"] if task.time_remaining is not None else []
        return Text(", ".join(parts), no_wrap=True)


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Show progress bars on stderr, if it is a terminal and `--quiet` was not given.

    Yields a function that adds the bar of a topic and returns its update function, which takes done and total. The bar
    is removed when everything is done, so the bars are few even if a run has very many topics.
    """
    is_hidden = terminal.is_quiet() or is_json() or not terminal.is_terminal(terminal.err)
    columns = (TextColumn("{task.description}"), BarColumn(_BAR_COLUMNS), TaskProgressColumn(), _Amounts())
    with Progress(*columns, console=terminal.err, transient=True, disable=is_hidden) as bars:
        by_topic: dict[str, TaskID] = {}

        def begin(topic: str) -> Callable[[int, int], None]:
            if topic not in by_topic:
                name = safe(terminal.shortened(printable(topic), terminal.err.width // _NAME_SHARE))
                by_topic[topic] = bars.add_task(name, total=None)
            return partial(update, topic)

        def update(topic: str, done: int, total: int) -> None:
            if done >= total and topic in by_topic:
                bars.remove_task(by_topic.pop(topic))
            elif done < total:
                begin(topic)
                bars.update(by_topic[topic], completed=done, total=total)

        yield begin
