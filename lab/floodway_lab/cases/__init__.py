"""Workloads: events, what there is to find in them, and what a loop without any engine finds."""
