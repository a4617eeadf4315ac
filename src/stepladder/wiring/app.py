"""Loads the user's code and workflow documents."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.lint.check import check_document
from stepladder.lint.compile import UNPINNED, compile_workflow
from stepladder.runner.rules import TIMEOUT_S, bounded
from stepladder.schemas.document import Workflow
from stepladder.schemas.errors import BadInputError, StepladderError, described
from stepladder.schemas.finding import BadDocumentError
from stepladder.sdk.kit import registered
from stepladder.wiring.files import read_text
from stepladder.wiring.note import read_note

if TYPE_CHECKING:
    from types import ModuleType

    from stepladder.lint.compile import Compiled
    from stepladder.lint.schemas import Audit
    from stepladder.schemas.finding import Finding
    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.workflows.machine import Machine


def load_kit(app: str | None, document: str | None = None, *, rule_timeout_s: float = TIMEOUT_S) -> Kit:
    """Imports ``app``, a module's name or the path of a ``.py`` file, and returns the tools and rules it registers.

    The module of a ``document`` written ``MODULE:NAME`` is imported too. The working folder comes first in the path,
    as with ``celery -A``. Raises ``BadInputError`` for a module that cannot be imported.
    """
    for module in (app, None if document is None else _module_and_name(document)[0]):
        if module is not None:
            _import(module)
    return bounded(registered(), rule_timeout_s)


def kit_of(settings: Settings, document: str | None = None) -> Kit:
    """The same for the module of the settings or, without one, that of a running ``stepladder up``."""
    note = None if settings.app is not None else read_note(settings.home)
    if note is None or note.app is None or note.folder is None:
        return load_kit(settings.app, document, rule_timeout_s=settings.rule_timeout_s)
    _import(note.app, Path(note.folder))
    return load_kit(None, document, rule_timeout_s=settings.rule_timeout_s)


def _module_and_name(document: str) -> tuple[str | None, str]:
    module, _, name = document.partition(":")
    return (module, name) if name and not Path(document).exists() else (None, "")


def _import(app: str, folder: Path | None = None) -> ModuleType:
    here = folder or Path.cwd()
    if str(here) not in sys.path:
        sys.path.insert(0, str(here))
    try:
        if not app.endswith(".py"):
            return importlib.import_module(app)
        path = (here / app).resolve()
        name = "stepladder_app_" + "_".join(path.with_suffix("").parts[1:])
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise BadInputError(f"there is no file {app}", remedy="name the Python module that registers your tools")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except StepladderError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"the module {app} cannot be imported: {described(error)}{_place(error)}"
        raise BadInputError(message, remedy="fix it, or name another with --app or STEPLADDER_APP") from error
    return module


def _place(error: BaseException) -> str:
    """Where in the user's code an error was raised."""
    ours = (__file__, importlib.__file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename not in ours and f.filename[0] != "<"]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def compile_document(document: str, kit: Kit, audit: Audit = UNPINNED) -> Compiled:
    """Compiles a document, which is a file (YAML or JSON) or ``MODULE:NAME`` for one built in Python.

    Raises ``BadInputError`` if there is none.
    """
    module, name = _module_and_name(document)
    if module is not None:
        workflow = getattr(_import(module), name, None)
        if not isinstance(workflow, Workflow):
            raise BadInputError(f"{document} is not a stepladder.Workflow", remedy="give MODULE:NAME, or a file")
        return compile_workflow(workflow, kit, audit)
    return check_document(read_text(Path(document)), kit, audit)


def load_machine(document: str, kit: Kit) -> tuple[Machine, tuple[Finding, ...]]:
    """The machine of a document and its warnings. Raises ``BadDocumentError`` with every error at once."""
    compiled = compile_document(document, kit)
    if compiled.machine is None:
        raise BadDocumentError(document, compiled.errors)
    return compiled.machine, compiled.findings
