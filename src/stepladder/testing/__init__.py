"""For tests of workflows: a scripted engine over real sockets, and a way to run a job against it."""

from stepladder.schemas.actor import Actor
from stepladder.testing.engine import ScriptedEngine
from stepladder.testing.run import Ran, run
from stepladder.testing.script import Answer, Fault, FaultKind, Line, Raw, RecordedRequest, Reply
from stepladder.testing.wait import eventually, wait_until

__all__ = [
    "Actor",
    "Answer",
    "Fault",
    "FaultKind",
    "Line",
    "Ran",
    "Raw",
    "RecordedRequest",
    "Reply",
    "ScriptedEngine",
    "eventually",
    "run",
    "wait_until",
]
