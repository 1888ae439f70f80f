"""Spark: contexts made for long-lived Python tasks, and stages as Spark jobs."""
