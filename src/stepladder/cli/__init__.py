"""The command line: one face over the services in ``wiring``."""
