"""Stored answers judged again: specimens, revalidation, drift. Pure."""
