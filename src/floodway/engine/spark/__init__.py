"""Spark: contexts made for long-lived Python tasks, tasks and micro-batches as Spark jobs."""
