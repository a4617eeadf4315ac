"""Servers for a machine that has only Python: PostgreSQL, Valkey and llama.cpp as child processes, from PyPI wheels."""
