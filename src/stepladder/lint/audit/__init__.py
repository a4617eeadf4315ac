"""The audit of a schema before any model is asked under it. ``audit.check`` is the way in."""
