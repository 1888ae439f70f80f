"""Runs: one system under test, what it pulls from, what it has found, and whether that is right."""
