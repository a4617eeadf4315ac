"""The tools of all examples, for a system that runs all of them: ``stepladder up --app examples.all_tools``."""

from examples.bug_report import tools as bug_report
from examples.help_desk import tools as help_desk
from examples.refund import tools as refund
from examples.research import tools as research
from examples.usage_bill import tools as usage_bill

__all__ = ["bug_report", "help_desk", "refund", "research", "usage_bill"]
