"""Pictures as SVG, in the colours of the page that they stand in. No program draws them."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Drawing", "Point", "graph", "roofline"]


class Drawing:
    """``drawing.text(10, 20, "A")`` and so on, then ``str(drawing)``: a picture of ``width`` by ``height``."""

    def __init__(self, width: float, height: float, told: str) -> None:
        self._head = (
            f'<svg class="tcdsl" role="img" aria-label="{html.escape(told)}" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="12" '
            'fill="currentColor" stroke="currentColor" xmlns="http://www.w3.org/2000/svg">'
        )
        self._parts: list[str] = []

    def line(self, points: Sequence[tuple[float, float]], more: str = "") -> None:
        """A line through the ``points``; ``more`` are attributes."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline fill="none" points="{places}" {more}/>')

    def box(self, x: float, y: float, width: float, height: float, more: str = "") -> None:
        """A box with round corners."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {place} rx="4" fill="none" {more}/>')

    def circle(self, x: float, y: float, radius: float, told: str) -> None:
        """A circle that says what it is where the mouse is over it."""
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
        title = f"<title>{html.escape(told)}</title>"
        self._parts.append(f'<circle {place} fill="#4a90d9" fill-opacity="0.6" stroke="none">{title}</circle>')

    def text(self, x: float, y: float, text: str, more: str = "") -> None:
        """Text that begins at a place."""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" stroke="none" {more}>{html.escape(text)}</text>')

    def __str__(self) -> str:
        return f"{self._head}{''.join(self._parts)}</svg>"


@dataclass(frozen=True, slots=True)
class Point:
    """A nest in a roofline: operations for each byte, operations in a second, its share of the time."""

    label: str
    told: str
    intensity: float
    rate: float
    share: float


_DASHES = "none", "7 3", "2 3"
_WIDTH, _HEIGHT, _LEFT, _BELOW = 560.0, 320.0, 60.0, 40.0


def roofline(points: Sequence[Point], peak: float, bandwidths: Sequence[tuple[str, float]]) -> str:
    """Where nests lie under what the machine can do; the larger a circle, the more of the time it is.

    ``peak`` are operations in a second, ``bandwidths`` bytes in a second by the name of the memory, the slowest last.
    """
    slowest = bandwidths[-1][1]
    lows = [min(0.5, *(each.intensity for each in points)), peak / slowest / 64]
    low, high = _decade(min(lows), -1), _decade(max(peak / slowest * 4, *(each.intensity for each in points)), 1)
    least = min(low * slowest, *(each.rate for each in points))
    bottom, top = _decade(least, -1), _decade(max(peak, *(each.rate for each in points)), 1)

    def place(intensity: float, rate: float) -> tuple[float, float]:
        x = (math.log10(max(intensity, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
        y = (math.log10(max(rate, bottom)) - math.log10(bottom)) / (math.log10(top) - math.log10(bottom))
        return _LEFT + x * (_WIDTH - _LEFT - 20), _HEIGHT - _BELOW - y * (_HEIGHT - _BELOW - 20)

    drawing = Drawing(_WIDTH, _HEIGHT, "roofline: operations in a second over operations for each byte")
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        x, y = place(10.0**power, bottom)
        drawing.line([(x, y), (x, 20)], 'stroke-opacity="0.15"')
        drawing.text(x, y + 16, f"{10.0**power:g}", 'text-anchor="middle"')
    for power in range(round(math.log10(bottom)), round(math.log10(top)) + 1):
        x, y = place(low, 10.0**power)
        drawing.line([(x, y), (_WIDTH - 20, y)], 'stroke-opacity="0.15"')
        drawing.text(x - 6, y + 4, f"{10.0 ** (power - 9):g}", 'text-anchor="end"')
    for k, (name, rate) in enumerate(bandwidths):
        corner = min(max(peak / rate, low), high)
        dashes = f'stroke-opacity="0.7" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"'
        drawing.line([place(low, low * rate), place(corner, corner * rate)], dashes)
        y = _HEIGHT - _BELOW - 8 - 14 * (len(bandwidths) - 1 - k)
        drawing.line([(_WIDTH - 190, y - 3), (_WIDTH - 160, y - 3)], dashes)
        drawing.text(_WIDTH - 154, y, name, 'font-size="10"')
    drawing.line([place(peak / bandwidths[0][1], peak), place(high, peak)], 'stroke-opacity="0.7"')
    drawing.text((_WIDTH + _LEFT) / 2, _HEIGHT - 6, "operations for each byte", 'text-anchor="middle"')
    drawing.text(4, 12, "10⁹ operations in a second")
    for each in sorted(points, key=lambda point: -point.share):
        x, y = place(each.intensity, each.rate)
        drawing.circle(x, y, 4 + 14 * math.sqrt(each.share), each.told)
        drawing.text(x, y + 4, each.label, 'text-anchor="middle" font-size="10"')
    return str(drawing)


def _decade(value: float, direction: int) -> float:
    # The power of ten beside a number.
    power = math.log10(max(value, 1e-300))
    return 10.0 ** (math.floor(power) if direction < 0 else math.ceil(power))


_BOX, _GAP, _LEVEL, _LETTER = 44.0, 16.0, 80.0, 7.2


def graph(nodes: Sequence[tuple[str, str]], edges: Sequence[tuple[int, int]]) -> str:
    """Boxes with two lines of text, each below those that it comes from; an edge goes from one number to another.

    Edges go from earlier nodes to later ones.
    """
    level = [0] * len(nodes)
    for one, other in sorted(edges, key=lambda edge: edge[1]):
        level[other] = max(level[other], level[one] + 1)
    widths = [_LETTER * max(len(text) for text in node) + 12 for node in nodes]
    rows = [[k for k in range(len(nodes)) if level[k] == depth] for depth in range(max(level) + 1)]
    lengths = [sum(widths[k] for k in row) + _GAP * (len(row) - 1) for row in rows]
    width, height = max(lengths) + 2 * _GAP, _LEVEL * (len(rows) - 1) + _BOX + 2 * _GAP
    places: list[tuple[float, float]] = [(0.0, 0.0)] * len(nodes)
    for depth, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        x = (width - length) / 2
        for k in row:
            places[k] = x, _GAP + depth * _LEVEL
            x += widths[k] + _GAP
    drawing = Drawing(width, height, "graph of tensors")
    for one, other in dict.fromkeys(edges):
        begin = places[one][0] + widths[one] / 2, places[one][1] + _BOX
        end = places[other][0] + widths[other] / 2, places[other][1]
        drawing.line([begin, end], 'stroke-opacity="0.5"')
        drawing.line([(end[0] - 4, end[1] - 7), end, (end[0] + 4, end[1] - 7)], 'stroke-opacity="0.5"')
    for (x, y), own, (first, second) in zip(places, widths, nodes, strict=True):
        drawing.box(x, y, own, _BOX)
        drawing.text(x + own / 2, y + 18, first, 'text-anchor="middle" font-weight="bold"')
        drawing.text(x + own / 2, y + 35, second, 'text-anchor="middle"')
    return str(drawing)
