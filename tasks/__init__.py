"""Celery: a message says that a job is due, a worker runs due jobs, and a sweep replaces lost messages.

Nothing else knows Celery. The broker may lose everything at any moment: PostgreSQL alone holds the truth.
"""
