"""A laid out graph can be read: nothing lies on anything else, and every edge leads from its one end to the other."""

from __future__ import annotations

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from stepladder.dashboard.curves import HIGH, LABEL_HIGH, Drawing
from stepladder.dashboard.layout import lay_out

Edges = tuple[tuple[str, str, str], ...]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[str, ...], Edges]:
    nodes = tuple(f"state_{nth}" * draw(st.integers(1, 2)) for nth in range(draw(st.integers(1, 12))))
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), unique=True, max_size=24))
    labels = st.sampled_from(["", "ok", "error", "refuse, timeout"])
    return nodes, tuple((source, target, draw(labels)) for source, target in pairs)


def rectangles(drawing: Drawing) -> list[tuple[float, float, float, float]]:
    boxes = [(box.x - box.width / 2, box.y, box.x + box.width / 2, box.y + box.height) for box in drawing.boxes]
    labels = [
        (line.x - line.label_width / 2, line.y - LABEL_HIGH / 2, line.x + line.label_width / 2, line.y + LABEL_HIGH / 2)
        for line in drawing.lines
        if line.label
    ]
    return boxes + labels


@given(graphs())
def test_no_box_and_no_label_lies_on_another_and_all_lie_inside(graph: tuple[tuple[str, ...], Edges]) -> None:
    drawing = lay_out(*graph)
    found = rectangles(drawing)
    for one, other in combinations(found, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for left, top, right, bottom in found:
        assert min(left, top) >= 0
        assert (right <= drawing.width + 1e-6, bottom <= drawing.height) == (True, True)


@given(graphs())
def test_every_edge_is_drawn_once_between_its_ends_and_its_arrow_is_at_the_target(
    graph: tuple[tuple[str, ...], Edges],
) -> None:
    nodes, edges = graph
    drawing = lay_out(nodes, edges)
    boxes = {box.name: box for box in drawing.boxes}
    assert sorted(boxes) == sorted(nodes)
    assert sorted((line.source, line.target, line.label) for line in drawing.lines) == sorted(edges)
    for line in drawing.lines:
        numbers = [float(text) for text in re.findall(r"-?[0-9.]+", line.path)]
        ends = {numbers[1], numbers[-1]}
        tip_x, tip_y = map(float, line.arrow.split()[0].split(","))
        source, target = boxes[line.source], boxes[line.target]
        if line.source == line.target:
            assert target.y <= tip_y <= target.y + HIGH
            continue
        assert abs(tip_x - target.x) <= target.width / 2
        edge_of = {round(box.y + high, 1) for box in (source, target) for high in (0, HIGH)}
        assert {round(end, 1) for end in ends} <= edge_of
        assert round(tip_y, 1) in (round(target.y, 1), round(target.y + HIGH, 1))


def test_a_chain_goes_straight_down_in_its_order() -> None:
    drawing = lay_out(("a", "b", "c"), (("a", "b", "on"), ("b", "c", "on"), ("c", "a", "again")))
    tops = [box.y for box in drawing.boxes]
    assert tops == sorted(tops)
    assert len(set(tops)) == 3
