"""Servers for a laptop with nothing but Python: PostgreSQL and llama.cpp as child processes out of PyPI wheels."""
