"""Engines: how a planned flow runs.

Nothing is imported here: a task's process needs only the rooms it works in.
"""
