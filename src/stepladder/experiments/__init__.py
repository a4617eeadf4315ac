"""Variants on the same inputs, and how much of their difference is more than chance. Pure."""
