"""The chart docs/speed.svg: the CPU time of each loader for one topic, drawn from the table in docs/speed.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.bench import loaders as by
from tests.bench.cases import NONE, Case
from tests.bench.report import BEGIN, END

CHART = Path(__file__).parents[2] / "docs" / "speed.svg"
CASE = NONE
"""The topic of the chart: every loader can read it."""
_COST = "CPU s per M"
_NAMES = {by.OURS: "Penstock", by.OURS_IN_SPARK: "Penstock in Spark"}
_OURS_COLOR, _OTHERS_COLOR = "#1a7f5a", "#9aa5b1"
_WIDTH, _ROW, _TOP, _LABELS, _NUMBERS = 760, 32, 62, 180, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The CPU seconds that a loader needs for one million records."""

    loader: str
    cpu_s: float


def recorded_bars(page: str, case: Case = CASE) -> list[Bar]:
    """The bars of a case, read from the table of loaders in the page, cheapest first."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    header = next(row for row in rows if _COST in row)
    cost, loader = header.index(_COST), header.index("loader")
    costs = [row for row in rows if row[0] == case.title and len(row) == len(header)]
    return sorted((Bar(loader=row[loader], cpu_s=float(row[cost])) for row in costs), key=lambda bar: bar.cpu_s)


def svg(bars: Sequence[Bar], case: Case = CASE) -> str:
    """The chart as an SVG image with horizontal bars."""
    height = _TOP + _ROW * len(bars) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        '<g font-family="sans-serif" font-size="14" fill="#1f2933">',
        '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>',
        '<text x="16" y="28" font-size="16" font-weight="bold">CPU seconds to load one million records</text>',
        f'<text x="16" y="48" fill="#52606d">Values of {escape(case.title)}, to Parquet. Shorter is better.</text>',
    ]
    longest = max(bar.cpu_s for bar in bars)
    for number, bar in enumerate(bars):
        lines += _drawn(bar, y=_TOP + number * _ROW, length=(_WIDTH - _LABELS - _NUMBERS) * bar.cpu_s / longest)
    return "\n".join([*lines, "</g>", "</svg>\n"])


def _drawn(bar: Bar, *, y: int, length: float) -> Sequence[str]:
    color = _OURS_COLOR if bar.loader in _NAMES else _OTHERS_COLOR
    name, middle = escape(_NAMES.get(bar.loader, bar.loader)), y + 19
    return (
        f'<text x="{_LABELS - 10}" y="{middle}" text-anchor="end">{name}</text>',
        f'<rect x="{_LABELS}" y="{y + 3}" width="{length:.0f}" height="{_ROW - 8}" rx="3" fill="{color}"/>',
        f'<text x="{_LABELS + length + 8:.0f}" y="{middle}">{bar.cpu_s:.2f}</text>',
    )


def write(page: Path, chart: Path = CHART) -> None:
    """Draw the chart of the numbers in the page."""
    chart.write_text(svg(recorded_bars(page.read_text(encoding="utf-8"))), encoding="utf-8")
