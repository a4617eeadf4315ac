"""Chaos test: processes are killed while jobs run, and an auditor checks the result. See ``scripts/chaos``."""
