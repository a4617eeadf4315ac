"""Builds a running system from settings: servers, store, engine client, runner."""
