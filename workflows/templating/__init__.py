"""Jinja's language over JSON, bounded: the parser is Jinja's. ``workflows.templates`` is the way in."""
