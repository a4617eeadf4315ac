"""A drawn graph is readable: nothing overlaps, and every edge leads from its source to its target."""

from __future__ import annotations

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from stepladder.dashboard.layout import LABEL_HEIGHT, Drawing, lay_out

Graph = tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = tuple(f"state_{nth}" * draw(st.integers(1, 2)) for nth in range(draw(st.integers(1, 12))))
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), unique=True, max_size=24))
    labels = st.sampled_from(["", "ok", "error", "refuse, timeout"])
    return nodes, tuple((source, target, draw(labels)) for source, target in pairs)


def rectangles(drawing: Drawing) -> list[tuple[float, float, float, float]]:
    nodes = [(node.x - node.width / 2, node.top, node.x + node.width / 2, node.bottom) for node in drawing.nodes]
    half = LABEL_HEIGHT / 2
    return nodes + [
        (edge.x - edge.label_width / 2, edge.y - half, edge.x + edge.label_width / 2, edge.y + half)
        for edge in drawing.edges
        if edge.label
    ]


@given(graphs())
def test_nodes_and_labels_fit_without_overlap(graph: Graph) -> None:
    drawing = lay_out(*graph)
    found = rectangles(drawing)
    for one, other in combinations(found, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for left, top, right, bottom in found:
        assert min(left, top) >= 0
        assert right <= drawing.width + 1e-6
        assert bottom <= drawing.height


@given(graphs())
def test_every_edge_joins_its_ends_and_points_at_its_target(graph: Graph) -> None:
    drawing = lay_out(*graph)
    nodes = {node.name: node for node in drawing.nodes}
    assert sorted(nodes) == sorted(graph[0])
    assert sorted((edge.source, edge.target, edge.label) for edge in drawing.edges) == sorted(graph[1])
    for edge in drawing.edges:
        numbers = [float(text) for text in re.findall(r"-?[0-9.]+", edge.path)]
        tip_x, tip_y = map(float, edge.arrow.split()[0].split(","))
        source, target = nodes[edge.source], nodes[edge.target]
        if edge.source == edge.target:
            assert target.top <= tip_y <= target.bottom
            continue
        assert abs(tip_x - target.x) <= target.width / 2
        borders = {round(y, 1) for node in (source, target) for y in (node.top, node.bottom)}
        assert {round(numbers[1], 1), round(numbers[-1], 1)} <= borders
        assert round(tip_y, 1) in (round(target.top, 1), round(target.bottom, 1))


def test_a_chain_leads_straight_down() -> None:
    drawing = lay_out(("a", "b", "c"), (("a", "b", "on"), ("b", "c", "on"), ("c", "a", "again")))
    tops = [node.top for node in drawing.nodes]
    assert tops == sorted(set(tops))
