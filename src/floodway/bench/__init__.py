"""Benchmarks: how fast Floodway is, beside what limits it."""
