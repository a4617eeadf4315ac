"""Templates in documents: Jinja's language over JSON, compiled once, bounded in every rendering.

MiniJinja renders, and counts its work as fuel (``trim_blocks`` and ``lstrip_blocks`` are on); Jinja's own parser reads
the source first for the static checks. Values are JSON's, printed as JSON, strings as they are. A name that does not
exist fails the rendering, except under ``is defined`` and ``default``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import minijinja
from jinja2 import Environment, TemplateSyntaxError
from jinja2.parser import Parser

from stepladder.validation.jsonmath import EvaluationError
from stepladder.workflows.templating.checks import BadTemplateError, Path, check, names_read
from stepladder.workflows.templating.filters import OUR_TESTS, OURS
from stepladder.workflows.templating.values import MAX_OUTPUT, Missing, MissingError, RenderError, seen, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.schemas.jsontypes import Json

# A system prompt with everything in it is some 10,000 words.
MAX_SOURCE = 65_536
FUEL = 200_000
"""Instructions, items and pieces of text of one rendering: at most some 0.2 s of one core."""

_JINJA = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False, autoescape=False)  # noqa: S701  only its parser is used


@dataclass(frozen=True, slots=True)
class BadTemplate:
    """The source is not a template: what is wrong, and in which line, from 1."""

    reason: str
    line: int


@dataclass(frozen=True, slots=True)
class RenderFailure:
    """There is no text. ``missing`` is the full dotted name that did not exist, such as ``turns.usage.team``.

    ``reason`` shows names and pieces of the template, and never a value.
    """

    reason: str
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. It has no state, so threads and tasks may share it.

    ``names`` are the dotted paths that it reads, from the root names on: ``("turns", "usage", "team")``. A path stops
    where a computed index or a method begins. The template's own variables are not among them.
    """

    source: str
    names: frozenset[Path]
    _engine: minijinja.Environment = field(repr=False, compare=False)

    def render(self, names: Mapping[str, Json]) -> str | RenderFailure:
        """The text for these root names. Raises nothing."""
        unhandled: list[Missing] = []
        context = {name: seen(value, (name,), unhandled) for name, value in names.items()}
        absent = {path[0] for path in self.names} - set(names)
        context |= {name: Missing((name,), unhandled) for name in absent}
        unhandled.clear()
        try:
            text = self._engine.render_template("template", **context)
        except minijinja.TemplateError as error:
            failure = RenderFailure(self._reason(error))
        except MissingError as error:
            failure = RenderFailure(f"{error} is not defined", str(error) if str(error) in absent else None)
        except (RenderError, EvaluationError) as error:
            failure = RenderFailure(str(error))
        except (ArithmeticError, ValueError, RecursionError):
            failure = RenderFailure("a value is out of range, or nested too deeply")
        except (AttributeError, TypeError, KeyError, IndexError):
            failure = RenderFailure("a filter, a test or a method was given a value that it cannot take")
        else:
            if not unhandled and len(text) <= MAX_OUTPUT:
                return text
            failure = RenderFailure(f"the text has more than {MAX_OUTPUT:,} characters")
        if unhandled:
            name = unhandled[0].name
            return RenderFailure(f"{name} is not defined", name)
        return failure

    def _reason(self, error: minijinja.TemplateError) -> str:
        """MiniJinja's own text may show the values of variables."""
        if error.kind == "OutOfFuel":
            return "the rendering takes too many steps, or too much text"
        start, end = error.range or (0, 0)
        lines = self.source.encode()
        piece = lines[start:end].decode(errors="replace").strip()
        where = f" (line {error.line})" if error.line else ""
        what = "is not defined" if error.kind == "UndefinedError" else "cannot be evaluated"
        return f"{piece:.200} {what}{where}" if piece else f"the template {what}{where}"


def compile_template(source: str) -> Template | BadTemplate:
    """Compile a Jinja template. Raises nothing."""
    if len(source) > MAX_SOURCE:
        return BadTemplate(f"the template has {len(source):,} characters, and {MAX_SOURCE:,} are allowed", 1)
    try:
        tree = Parser(_JINJA, source).parse()
        check(tree)
        engine = minijinja.Environment(
            templates={"template": source},
            filters=OURS,
            tests=OUR_TESTS,
            debug=False,
            fuel=FUEL,
            undefined_behavior="strict",
            auto_escape_callback=lambda _: False,
            trim_blocks=True,
            lstrip_blocks=True,
            finalizer=shown,
        )
        engine.undeclared_variables_in_template("template")
        return Template(source, names_read(tree), engine)
    except TemplateSyntaxError as error:
        return BadTemplate(error.message or "this is not a template", error.lineno)
    except BadTemplateError as error:
        return BadTemplate(error.reason, error.line)
    except minijinja.TemplateError as error:
        return BadTemplate(error.detail or error.message, error.line or 1)
    except RecursionError:
        return BadTemplate("the template is nested too deeply", 1)
    except ValueError as error:
        # A number of more digits than Python reads.
        return BadTemplate(f"a number cannot be read: {error}", 1)
