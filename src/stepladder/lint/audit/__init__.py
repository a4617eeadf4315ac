"""The audit of a schema before a model uses it. Start with ``audit.check``."""
