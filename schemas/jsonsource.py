"""JSON text, read by the rules of JSON, as the nodes that a YAML reader would make of it.

JSON is a subset of YAML 1.2, yet YAML readers refuse or change some of what JSON allows: keys of over 1,024 characters,
U+007F, a bare U+0085. So JSON text never reaches them; it is also read many times
faster, and no JSON library reports positions.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from ruamel.yaml.error import StringMark
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_DECODER = json.JSONDecoder()
_DEEPEST = 200  # beyond every bound of a document's, and well within Python's stack


class _NotJsonError(Exception):
    """The text is not JSON."""


def compose_json(text: str) -> Node | None:
    """The one value of the text, or None if it is not JSON or is nested too deep."""
    scanner = _Scanner(text)
    try:
        return scanner.document()
    except _NotJsonError:
        return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def document(self) -> Node:
        self.skip()
        node = self.value(0)
        self.skip()
        if self.at != len(self.text):
            raise _NotJsonError
        return node

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = self.at if match is None else match.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> None:
        if self.peek() != mark:
            raise _NotJsonError
        self.at += 1

    def mark(self) -> StringMark:
        line = bisect_right(self.lines, self.at) - 1
        return StringMark("", self.at, line, self.at - self.lines[line], self.text, self.at)

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise _NotJsonError
        mark = self.mark()
        match self.peek():
            case "{":
                return MappingNode("map", self.several(depth, "}"), start_mark=mark)
            case "[":
                return SequenceNode("seq", self.several(depth, "]"), start_mark=mark)
            case '"':
                return self.string()
        plain = _PLAIN.match(self.text, self.at)
        if plain is None:
            raise _NotJsonError
        self.at = plain.end()
        return ScalarNode("value", plain[0], start_mark=mark)

    def string(self) -> ScalarNode:
        mark = self.mark()
        if self.peek() != '"':
            raise _NotJsonError
        try:
            value, self.at = _DECODER.raw_decode(self.text, self.at)
        except ValueError as error:
            raise _NotJsonError from error
        return ScalarNode("str", value, start_mark=mark, style='"')

    def several(self, depth: int, closing: str) -> list[Node] | list[tuple[Node, Node]]:
        """The items of a list or the pairs of a map, from the opening bracket to after the closing one."""
        items: list[Node] = []
        pairs: list[tuple[Node, Node]] = []
        self.at += 1
        self.skip()
        while self.peek() != closing or items or pairs:
            if closing == "}":
                key = self.string()
                self.skip()
                self.take(":")
                self.skip()
                pairs.append((key, self.value(depth + 1)))
            else:
                items.append(self.value(depth + 1))
            self.skip()
            if self.peek() == closing:
                break
            self.take(",")
            self.skip()
        self.take(closing)
        return pairs or items
