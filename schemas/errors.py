"""The root of Stepladder's exceptions. Expected failures are values; an exception is a bug or broken infrastructure."""

from __future__ import annotations


class StepladderError(Exception):
    """Something that the user can act on.

    ``str(error)`` says what happened; ``remedy`` says what to do next, in one sentence, or is empty.
    Errors of libraries are mapped to a subclass where they enter, so that the interfaces only need this class.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class BadInputError(StepladderError):
    """Unusable input: exit code 2, HTTP 4xx."""


class EffectUnknownError(StepladderError):
    """For an irreversible tool to raise that cannot know whether it took effect: a person has to settle it.

    Say in the message what is known, for that person. From another tool it is an error like any other.
    """


class UnreachableError(StepladderError):
    """A required server does not answer or cannot be started: exit code 3, HTTP 503."""


class GoneError(StepladderError):
    """The requested data was deleted by retention: exit code 1, HTTP 410."""


def described(error: BaseException) -> str:
    """``ValueError: its text``, of any exception that user code may raise."""
    text = text_of(error)
    return f"{name_of(error)}: {text}" if text else name_of(error)


def text_of(error: BaseException) -> str:
    """``str(error)``, even if that raises."""
    try:
        return str.__str__(str(error))
    except BaseException:  # noqa: BLE001 -- its ``__str__`` may do anything
        return "its text cannot be read"


def name_of(error: BaseException) -> str:
    """The name of its class, even if a metaclass hides it."""
    try:
        return str.__str__(type(error).__name__)
    except BaseException:  # noqa: BLE001 -- as above
        return "an exception"
