"""Measurements, run by ``scripts/bench`` and never by the test run."""
