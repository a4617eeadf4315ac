"""Places for the nodes of a small directed graph, in layers from top to bottom, and lines between them.

The usual way in five steps: turn edges round that lead back, give each node a layer, put a stand-in for the edge into
every layer that it passes, order each layer so that few lines cross, and move nodes to the middle of their neighbours.
Every label has a layer of its own between two of nodes, so that it lies on nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from stepladder.dashboard.curves import APART, LOOP, MARGIN, Chain, Drawing, Spot, drawn, text_width

SWEEPS = 8
"""Far more than small graphs need to settle."""


@lru_cache(maxsize=256)
def lay_out(nodes: tuple[str, ...], edges: tuple[tuple[str, str, str], ...]) -> Drawing:
    """The nodes, of which the first stands at the top, and the edges as ``(source, target, label)``.

    There is one edge at most from a node to another, and both ends of it are among the nodes.
    """
    plain = [edge for edge in edges if edge[0] != edge[1]]
    back = _back_edges(nodes, [edge[:2] for edge in plain])
    forward = [(b, a) if (a, b) in back else (a, b) for a, b, _ in plain]
    layers = _layers(nodes, forward)
    spots = {name: Spot(name, layers[name] * 2, max(64.0, text_width(name) + 48)) for name in nodes}
    for source, end, label in edges:
        if source == end:
            spots[source].beside = LOOP + text_width(label) + 8
    rows: list[list[Spot]] = [[] for _ in range(max(layers.values()) * 2 + 1)]
    for spot in spots.values():
        rows[spot.layer].append(spot)
    chains = [_chain(spots[source], spots[target], label, rows) for source, target, label in plain]
    _order(rows)
    _move(rows)
    loops = [(source, label) for source, target, label in edges if source == target]
    return drawn(spots, chains, loops, rows)


def _back_edges(nodes: tuple[str, ...], edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Edges that close a circle, seen from the first node."""
    onward: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in edges:
        onward[source].append(target)
    state: dict[str, int] = {}
    back = set()
    for root in nodes:
        stack = [(root, iter(onward[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[name] = 2
                stack.pop()
            elif following not in state:
                state[following] = 1
                stack.append((following, iter(onward[following])))
            elif state[following] == 1:
                back.add((name, following))
    return back


def _layers(nodes: tuple[str, ...], edges: list[tuple[str, str]]) -> dict[str, int]:
    """The longest way to each node, in edges; there are no circles any more."""
    onward: dict[str, list[str]] = {name: [] for name in nodes}
    above = dict.fromkeys(nodes, 0)
    for source, target in edges:
        onward[source].append(target)
        above[target] += 1
    layers = dict.fromkeys(nodes, 0)
    ready = [name for name in nodes if not above[name]]
    while ready:
        name = ready.pop()
        for target in onward[name]:
            layers[target] = max(layers[target], layers[name] + 1)
            above[target] -= 1
            if not above[target]:
                ready.append(target)
    return layers


def _chain(source: Spot, target: Spot, label: str, rows: list[list[Spot]]) -> Chain:
    """The edge with its stand-ins, from top to bottom. The label is near the end where the edge begins."""
    downward = source.layer < target.layer
    high, low = (source, target) if downward else (target, source)
    at = high.layer + 1 if downward else low.layer - 1
    spots = [high]
    for layer in range(high.layer + 1, low.layer):
        spot = Spot(label if layer == at else "", layer, text_width(label) + 6 if layer == at else 4.0)
        rows[layer].append(spot)
        spots.append(spot)
    spots.append(low)
    for one, other in pairwise(spots):
        one.down.append(other)
        other.up.append(one)
    return Chain(tuple(spots), downward)


def _order(rows: list[list[Spot]]) -> None:
    """Each spot goes where the middle of its neighbours is, seen from above and from below by turns."""
    for _ in range(SWEEPS):
        for fixed, row in pairwise(rows):
            _sort(row, fixed, [spot.up for spot in row])
        for fixed, row in pairwise(reversed(rows)):
            _sort(row, fixed, [spot.down for spot in row])


def _sort(row: list[Spot], fixed: list[Spot], neighbours: list[list[Spot]]) -> None:
    place = {id(spot): float(nth) for nth, spot in enumerate(fixed)}
    wanted = {
        id(spot): _middle([place[id(one)] for one in near], nth)
        for nth, (spot, near) in enumerate(zip(row, neighbours, strict=True))
    }
    row.sort(key=lambda spot: wanted[id(spot)])


def _middle(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _move(rows: list[list[Spot]]) -> None:
    """Moves the spots of each layer towards their neighbours, without a change of their order."""
    for row in rows:
        _settle(row, [0.0] * len(row))
    for _ in range(SWEEPS):
        for row in rows[1:]:
            _settle(row, [_middle([one.x for one in spot.up], spot.x) for spot in row])
        for row in rows[-2::-1]:
            _settle(row, [_middle([one.x for one in spot.down], spot.x) for spot in row])
    left = min(spot.x - spot.width / 2 for row in rows for spot in row)
    for row in rows:
        for spot in row:
            spot.x += MARGIN - left


def _settle(row: list[Spot], wanted: list[float]) -> None:
    """The places nearest to those that are wanted, by least squares, of which none is too near to the next one."""
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (one.width + other.width) / 2 + one.beside + APART)
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=False):
        mean, size = place - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    for spot, mean, offset in zip(row, means, offsets, strict=False):
        spot.x = mean + offset
