"""The root of what Stepladder raises. Expected failures are values; what is raised is a bug or broken machinery."""

from __future__ import annotations


class StepladderError(Exception):
    """Something that the person at the keyboard can act on.

    ``str(error)`` says what happened; ``remedy`` says what to do next, in one sentence, or is empty.
    Errors of libraries are mapped to a subclass where they enter, so that a face needs to know this class alone.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class BadInputError(StepladderError):
    """What was handed in cannot be used: exit code 2, HTTP 4xx."""


class EffectUnknownError(StepladderError):
    """For an irreversible tool to raise that cannot know whether it took effect: a person has to settle it.

    Say in the message what is known, for that person. From another tool it is an error like any other.
    """


class UnreachableError(StepladderError):
    """A server that is needed does not answer or cannot be started: exit code 3, HTTP 503."""


class GoneError(StepladderError):
    """What is asked for was taken away by retention, as the settings say: exit code 1, HTTP 410."""
