"""Templates in documents: Jinja's language over JSON, compiled once, bounded in every rendering.

Jinja's syntax, scopes and blank-line rules hold (``trim_blocks`` and ``lstrip_blocks`` are on); the values are JSON's,
printed as JSON, strings as they are. A name that is not there fails the rendering, save under ``is defined`` and
``default``. What is not on the lists of filters, tests and methods does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.parser import Parser

from stepladder.validation.jsonmath import EvaluationError, MissingError
from stepladder.workflows.templating.checks import BadTemplateError, Path, check, reads
from stepladder.workflows.templating.runner import Renderer
from stepladder.workflows.templating.values import ExhaustedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.schemas.jsontypes import Json

# A system prompt with everything in it is some 10,000 words.
MAX_SOURCE = 65_536

# Only its syntax is used: nothing is compiled, loaded or run by it, so there is nothing to escape.
_JINJA = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False, autoescape=False)  # noqa: S701


@dataclass(frozen=True, slots=True)
class BadTemplate:
    """The source is not a template: what is wrong, and in which line, from 1."""

    reason: str
    line: int


@dataclass(frozen=True, slots=True)
class RenderFailure:
    """There is no text. ``missing`` is the full dotted name that was not there, such as ``turns.usage.team``."""

    reason: str
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. It has no state, so threads and tasks may share it.

    ``names`` are the dotted paths that it reads, from the root names on: ``("turns", "usage", "team")``. A path stops
    where a computed index or a method begins. The template's own variables are not among them. ``guarded`` are those
    that need not be there: each use stands under ``default``, ``is defined``, or a condition that says so.
    """

    source: str
    names: frozenset[Path]
    guarded: frozenset[Path]
    _tree: nodes.Template = field(repr=False, compare=False)

    def render(self, names: Mapping[str, Json]) -> str | RenderFailure:
        """The text for these root names. Raises nothing; its bounds stand in ``templatevalues``."""
        try:
            return Renderer(names).text(self._tree)
        except MissingError as error:
            return RenderFailure(error.reason, error.missing)
        except EvaluationError as error:
            return RenderFailure(error.reason)
        except ExhaustedError as error:
            return RenderFailure(str(error))
        except RecursionError:
            return RenderFailure("a value is nested too deeply")
        except (ArithmeticError, ValueError) as error:
            # Division by zero, integers that no double holds, numbers that JSON does not have.
            return RenderFailure(f"a value is out of range: {error}")


def compile_template(source: str) -> Template | BadTemplate:
    """Compile a Jinja template. Raises nothing."""
    if len(source) > MAX_SOURCE:
        return BadTemplate(f"the template has {len(source):,} characters, and {MAX_SOURCE:,} are allowed", 1)
    try:
        tree = Parser(_JINJA, source).parse()
        check(tree)
        found = reads(tree)
    except TemplateSyntaxError as error:
        return BadTemplate(error.message or "this is not a template", error.lineno)
    except BadTemplateError as error:
        return BadTemplate(error.reason, error.line)
    except RecursionError:
        return BadTemplate("the template is nested too deeply", 1)
    except ValueError as error:
        # A number of more digits than Python reads.
        return BadTemplate(f"a number cannot be read: {error}", 1)
    return Template(source, frozenset(found.names), frozenset(found.names - found.bare), tree)
