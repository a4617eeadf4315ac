"""The text of a document, YAML 1.2 or JSON, as plain data with the line of each value.

ruamel.yaml finds the structure of YAML, ``jsonsource`` that of JSON; the values of both are read here, by YAML 1.2's
core schema, in which ``no`` is a string, ``012`` is twelve and a date is a string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from stepladder.schemas.finding import Finding
from stepladder.schemas.jsonsource import compose_json
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 1_000_000
MAX_YAML_CHARACTERS = 250_000  # which take up to four seconds to read; a million take eighteen
MAX_DEPTH = 64
MAX_NODES = 100_000  # counted after aliases are followed, so that a bomb of aliases is small

_CORE = "tag:yaml.org,2002:"
_TAGS: Mapping[type[Node], tuple[str, ...]] = {
    MappingNode: ("map",),
    SequenceNode: ("seq",),
    ScalarNode: ("str", "int", "float", "bool", "null", "timestamp", "merge", "value"),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,308}")
_OCTAL = re.compile(r"0o[0-7]{1,300}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,250}")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, slots=True)
class Source:
    """Plain data, and the line and column (from 1) of every value by JSON pointer."""

    value: Any
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def place(self, where: str) -> tuple[int | None, int | None]:
        """The place of ``where``, or of the nearest value around it."""
        while where and where not in self.places:
            where = where.rpartition("/")[0]
        return self.places.get(where, (None, None))


def read(text: str) -> Source | list[Finding]:
    """Reads one document. Every duplicate key, foreign tag and unusable value is found, not only the first."""
    if len(text) > MAX_CHARACTERS:
        return [_finding("too_large", "", f"the document has {len(text):,} characters; {MAX_CHARACTERS:,} are allowed")]
    try:
        root = compose_json(text)
        if root is None and len(text) > MAX_YAML_CHARACTERS:
            message = f"the YAML has {len(text):,} characters; {MAX_YAML_CHARACTERS:,} are allowed"
            return [_finding("too_large", "", message, f"write it as JSON, of which {MAX_CHARACTERS:,} are")]
        if root is None:
            root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(filter(None, (error.context, error.problem)))
        return [
            Finding(
                "syntax",
                "",
                f"this is neither YAML nor JSON: {problem}",
                "fix the text at this line; a value with `: ` or a leading `{`, `[`, `*`, `&` needs quotes",
                line=None if mark is None else mark.line + 1,
                column=None if mark is None else mark.column + 1,
            )
        ]
    except (YAMLError, ValueError) as error:
        return [_finding("syntax", "", f"this is neither YAML nor JSON: {error}")]
    except RecursionError:
        return [_finding("too_deep", "", f"the document nests deeper than {MAX_DEPTH} levels")]
    if root is None:
        return [_finding("empty", "", "the document is empty", "write a workflow: name, version, start and states")]
    reader = _Reader()
    value = reader.value(root, ())
    return reader.findings or Source(value, reader.places)


def _finding(code: str, where: str, message: str, remedy: str = "", node: Node | None = None) -> Finding:
    mark = None if node is None else node.start_mark
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return Finding(code, where, message, remedy, line=line, column=column)


class _Reader:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.places: dict[str, tuple[int, int]] = {}
        self.nodes = 0

    def value(self, node: Node, path: tuple[str | int, ...]) -> Any:
        where = pointer(path)
        self.nodes += 1
        if len(path) > MAX_DEPTH or self.nodes > MAX_NODES:
            if not any(finding.code == "too_deep" for finding in self.findings):
                bound = f"{MAX_DEPTH} levels or {MAX_NODES:,} values"
                self._find("too_deep", where, f"the document has more than {bound}, its aliases followed", "", node)
            return None
        self.places.setdefault(where, (node.start_mark.line + 1, node.start_mark.column + 1))
        if str(node.tag).removeprefix(_CORE) not in _TAGS[type(node)]:
            self._find("foreign_tag", where, f"the tag {node.tag} is not allowed", "write plain YAML or JSON", node)
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, where) if isinstance(node, ScalarNode) else None

    def _mapping(self, node: MappingNode, path: tuple[str | int, ...]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, item in node.value:
            key = self._scalar(key_node, pointer(path)) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                shown = getattr(key_node, "value", "") if isinstance(key_node, ScalarNode) else "a list or a map"
                self._find("key_not_text", pointer(path), f"the key {shown} is not text", "put it in quotes", key_node)
                continue
            where = (*path, key)
            if key in mapping:
                message = f"the key {key!r} occurs twice, first on line {first[key]}"
                self._find("duplicate_key", pointer(where), message, "remove one of the two", key_node)
                continue
            first[key] = key_node.start_mark.line + 1
            mapping[key] = self.value(item, where)
        return mapping

    def _scalar(self, node: ScalarNode, where: str) -> Any:
        text = str(node.value)
        try:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")  # JSON spells one character as two escapes
        except UnicodeDecodeError:
            self._find("bad_unicode", where, "this contains an unpaired surrogate", "remove it", node)
            return ""
        is_text = node.style is not None or str(node.tag).removeprefix(_CORE) == "str"
        return text if is_text else self._plain(text, where, node)

    def _plain(self, text: str, where: str, node: Node) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
            return int(text, 0)
        number = float(text) if _FRACTION.fullmatch(text) else None
        if _NOT_FINITE.fullmatch(text) or (number is not None and abs(number) == float("inf")):
            self._find("not_finite", where, f"{text} is not a JSON number", "write a finite number", node)
            return None
        return text if number is None else number

    def _find(self, code: str, where: str, message: str, remedy: str, node: Node) -> None:
        self.findings.append(_finding(code, where, message, remedy, node))
