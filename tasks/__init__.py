"""Celery: a message says that a job is due, a worker runs slices of jobs, a sweep rings again what was not heard.

Nothing else knows that Celery exists. The broker holds no truth: it may lose everything at any moment.
"""
