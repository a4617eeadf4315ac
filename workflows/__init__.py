"""The state machine: what a job does next, given what happened and what time it is. Pure."""
