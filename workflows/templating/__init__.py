"""The parts of ``workflows.templates``: static checks, values as templates see them, filters and tests."""
