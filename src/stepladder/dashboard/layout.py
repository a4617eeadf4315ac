"""A layered drawing of a small directed graph: nodes in rows from top to bottom, edges as curves between them.

Edges that close a cycle are reversed, each node's row is its longest path from the top, and an edge gets a
point in every row that it passes. Sweeps down and up then move each row towards the middle of its neighbours. Labels
have separate rows between the rows of nodes, so that nothing overlaps. All lengths are pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import pairwise
from statistics import fmean

NODE_HEIGHT, LABEL_HEIGHT, ROW_GAP = 32.0, 16.0, 15.0
COLUMN_GAP, MARGIN, CHARACTER, LOOP = 18.0, 12.0, 7.2, 22.0
SWEEPS = 8
"""Far more than small graphs need to settle."""


@dataclass(slots=True, eq=False)
class Node:
    """A node, or an edge's point in a row. ``x`` is its middle, ``loop`` the space for an edge to itself."""

    name: str
    row: int
    width: float
    loop: float = 0.0
    x: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)

    @property
    def height(self) -> float:
        return LABEL_HEIGHT if self.row % 2 else NODE_HEIGHT

    @property
    def top(self) -> float:
        pairs, label = divmod(self.row, 2)
        return MARGIN + pairs * (NODE_HEIGHT + LABEL_HEIGHT + 2 * ROW_GAP) + label * (NODE_HEIGHT + ROW_GAP)

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True, slots=True)
class Edge:
    """An SVG path, the corners of its arrowhead, and its label with the middle of it."""

    source: str
    target: str
    label: str
    path: str
    arrow: str
    x: float
    y: float

    @property
    def label_width(self) -> float:
        return text_width(self.label)


@dataclass(frozen=True, slots=True)
class Drawing:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def text_width(text: str) -> float:
    return len(text) * CHARACTER


@lru_cache(maxsize=256)
def lay_out(names: tuple[str, ...], edges: tuple[tuple[str, str, str], ...]) -> Drawing:
    """Draws nodes, the first at the top, and edges ``(source, target, label)``: at most one for each ordered pair."""
    plain = [edge for edge in edges if edge[0] != edge[1]]
    row_of = _rows_of(names, [edge[:2] for edge in plain])
    nodes = {name: Node(name, row_of[name], max(64.0, text_width(name) + 48)) for name in names}
    for source, target, label in edges:
        if source == target:
            nodes[source].loop = LOOP + text_width(label) + 8
    rows: list[list[Node]] = [[] for _ in range(max(row_of.values()) + 1)]
    for node in nodes.values():
        rows[node.row].append(node)
    points = [_points(nodes[source], nodes[target], label, rows) for source, target, label in plain]
    _place(rows)
    drawn = [_curve(*edge, line) for edge, line in zip(plain, points, strict=True)]
    drawn += [_loop(nodes[source], label) for source, target, label in edges if source == target]
    width = max(node.x + node.width / 2 + node.loop for row in rows for node in row)
    return Drawing(tuple(nodes.values()), tuple(drawn), width + MARGIN, rows[-1][0].bottom + MARGIN)


def _rows_of(names: tuple[str, ...], edges: list[tuple[str, str]]) -> dict[str, int]:
    """An even row for each node, below all that lead to it by edges that close no cycle."""
    above: dict[str, list[str]] = {name: [] for name in names}
    seen, open_ = set[str](), set[str]()

    def visit(name: str) -> None:
        seen.add(name)
        open_.add(name)
        for target in [end for source, end in edges if source == name]:
            upper, lower = (target, name) if target in open_ else (name, target)
            above[lower].append(upper)
            if target not in seen:
                visit(target)
        open_.remove(name)

    for name in names:
        if name not in seen:
            visit(name)
    rows: dict[str, int] = {}
    for name in TopologicalSorter(above).static_order():
        rows[name] = max((rows[upper] + 2 for upper in above[name]), default=0)
    return rows


def _points(source: Node, target: Node, label: str, rows: list[list[Node]]) -> list[Node]:
    """The edge's ends and its points between them, from top to bottom. Its label is the point next to the source."""
    high, low = sorted((source, target), key=lambda node: node.row)
    labelled = source.row + (1 if source is high else -1)
    points = [high]
    for row in range(high.row + 1, low.row):
        point = Node(label, row, text_width(label) + 6) if row == labelled else Node("", row, 4.0)
        rows[row].append(point)
        points.append(point)
    points.append(low)
    for upper, lower in pairwise(points):
        upper.below.append(lower)
        lower.above.append(upper)
    return points


def _place(rows: list[list[Node]]) -> None:
    for row in rows:
        _spread(row, {})
    for _ in range(SWEEPS):
        for row in rows[1:]:
            _spread(row, {node: fmean(one.x for one in node.above) for node in row if node.above})
        for row in rows[-2::-1]:
            _spread(row, {node: fmean(one.x for one in node.below) for node in row if node.below})
    left = min(node.x - node.width / 2 for row in rows for node in row)
    for row in rows:
        for node in row:
            node.x += MARGIN - left


def _spread(row: list[Node], wanted: dict[Node, float]) -> None:
    """Orders a row by the wanted places and takes the nearest ones, by least squares, that keep all nodes apart."""
    row.sort(key=lambda node: wanted.get(node, node.x))
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (one.width + other.width) / 2 + one.loop + COLUMN_GAP)
    blocks: list[tuple[float, int]] = []  # neighbours that touch, as the mean of where they want to begin, and how many
    for node, offset in zip(row, offsets, strict=True):
        mean, size = wanted.get(node, node.x) - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        blocks.append((mean, size))
    starts = [mean for mean, size in blocks for _ in range(size)]
    for node, start, offset in zip(row, starts, offsets, strict=True):
        node.x = start + offset


def _curve(source: str, target: str, label: str, points: list[Node]) -> Edge:
    high, *between, low = points
    x, y = _port(high, high.below, between[0]), high.bottom
    end = _port(low, low.above, between[-1])
    downward = source == high.name
    tip = (end, low.top, -8) if downward else (x, high.bottom, 8)
    path = f"M{x:.1f} {y:.1f}"
    for point in between:
        path += _bend(x, y, point.x, point.top) + f"V{point.bottom:.1f}"
        x, y = point.x, point.bottom
    path += _bend(x, y, end, low.top)
    at = between[0] if downward else between[-1]
    return Edge(source, target, label, path, _arrow(*tip), at.x, at.top + LABEL_HEIGHT / 2)


def _port(node: Node, others: list[Node], other: Node) -> float:
    """Where an edge meets a node: side by side with its other edges, in the order in which they come."""
    ranked = sorted(others, key=lambda one: one.x)
    apart = min(16.0, (node.width - 24) / max(1, len(ranked) - 1))
    return node.x + (ranked.index(other) - (len(ranked) - 1) / 2) * apart


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    return f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"


def _arrow(x: float, y: float, back: float) -> str:
    return f"{x:.1f},{y:.1f} {x - 4:.1f},{y + back:.1f} {x + 4:.1f},{y + back:.1f}"


def _loop(node: Node, label: str) -> Edge:
    right, top, bottom = node.x + node.width / 2, node.top + 9, node.bottom - 9
    out = right + LOOP
    path = f"M{right:.1f} {top:.1f}C{out:.1f} {top - 6:.1f} {out:.1f} {bottom + 6:.1f} {right:.1f} {bottom:.1f}"
    arrow = f"{right:.1f},{bottom:.1f} {right + 8:.1f},{bottom - 3:.1f} {right + 7:.1f},{bottom + 5:.1f}"
    return Edge(node.name, node.name, label, path, arrow, out + text_width(label) / 2, node.top + NODE_HEIGHT / 2)
