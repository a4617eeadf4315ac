"""A laid out graph as lines: from node to node through the stand-ins of each edge, with arrows and labels."""

from __future__ import annotations

from dataclasses import dataclass, field

HIGH, LABEL_HIGH, GAP = 32.0, 16.0, 15.0
"""Heights of a node and of a label, and the room between two layers, in pixels."""

APART, MARGIN, CHARACTER = 18.0, 12.0, 7.2
LOOP = 22.0
"""How far a line from a node to itself sticks out."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its middle at the top, and its size."""

    name: str
    x: float
    y: float
    width: float
    height: float = HIGH


@dataclass(frozen=True, slots=True)
class Line:
    """An edge as an SVG path, with its arrow's corners and the place of its label, whose middle is at ``x``."""

    source: str
    target: str
    path: str
    arrow: str
    x: float
    y: float
    label: str

    @property
    def label_width(self) -> float:
        return text_width(self.label)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it, in pixels."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: float
    height: float


@dataclass(slots=True, eq=False)
class Spot:
    """A node, or the stand-in of an edge. ``beside`` is room to its right for a line to itself."""

    name: str
    layer: int
    width: float
    beside: float = 0.0
    x: float = 0.0
    up: list[Spot] = field(default_factory=list)
    down: list[Spot] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chain:
    """An edge: its ends and its stand-ins, from top to bottom."""

    spots: tuple[Spot, ...]
    downward: bool


def text_width(text: str) -> float:
    return len(text) * CHARACTER


def drawn(spots: dict[str, Spot], chains: list[Chain], loops: list[tuple[str, str]], rows: list[list[Spot]]) -> Drawing:
    tops, at = [], MARGIN
    for layer in range(len(rows)):
        tops.append(at)
        at += _high(layer) + GAP
    boxes = {name: Box(name, spot.x, tops[spot.layer], spot.width) for name, spot in spots.items()}
    lines = [_line(chain, tops) for chain in chains] + [_loop(boxes[name], label) for name, label in loops]
    width = max(spot.x + spot.width / 2 + spot.beside for row in rows for spot in row)
    return Drawing(tuple(boxes.values()), tuple(lines), width + MARGIN, at - GAP + MARGIN)


def _high(layer: int) -> float:
    return LABEL_HIGH if layer % 2 else HIGH


def _port(spot: Spot, others: list[Spot], other: Spot) -> float:
    """Where a line leaves a node or comes to it: in the order of where the lines come from."""
    ranked = sorted(others, key=lambda one: one.x)
    nth = next(place for place, one in enumerate(ranked) if one is other)
    apart = min(16.0, (spot.width - 24) / max(1, len(ranked) - 1))
    return spot.x + (nth - (len(ranked) - 1) / 2) * apart


def _line(chain: Chain, tops: list[float]) -> Line:
    high, *between, low = chain.spots
    x, y = _port(high, high.down, between[0]), tops[high.layer] + HIGH
    end, bottom = _port(low, low.up, between[-1]), tops[low.layer]
    path, start = f"M{x:.1f} {y:.1f}", x
    for spot in between:
        top = tops[spot.layer]
        path += _bend(x, y, spot.x, top) + f"V{top + _high(spot.layer):.1f}"
        x, y = spot.x, top + _high(spot.layer)
    path += _bend(x, y, end, bottom)
    arrow = _arrow(end, bottom, -8) if chain.downward else _arrow(start, tops[high.layer] + HIGH, 8)
    label = between[-1] if not chain.downward else between[0]
    ends = (high.name, low.name) if chain.downward else (low.name, high.name)
    return Line(*ends, path, arrow, label.x, tops[label.layer] + LABEL_HIGH / 2, label.name)


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"


def _arrow(x: float, y: float, behind: float) -> str:
    return f"{x:.1f},{y:.1f} {x - 4:.1f},{y + behind:.1f} {x + 4:.1f},{y + behind:.1f}"


def _loop(box: Box, label: str) -> Line:
    right, top, bottom = box.x + box.width / 2, box.y + 9, box.y + HIGH - 9
    out = right + LOOP
    path = f"M{right:.1f} {top:.1f}C{out:.1f} {top - 6:.1f} {out:.1f} {bottom + 6:.1f} {right:.1f} {bottom:.1f}"
    arrow = f"{right:.1f},{bottom:.1f} {right + 8:.1f},{bottom - 3:.1f} {right + 7:.1f},{bottom + 5:.1f}"
    return Line(box.name, box.name, path, arrow, out + text_width(label) / 2, box.y + HIGH / 2, label)
