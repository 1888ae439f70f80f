"""Engines: how a planned flow runs."""
