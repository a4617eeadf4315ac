"""Runs jobs: claims one, advances its machine, commits, does what the machine wants, and keeps the lease meanwhile."""
