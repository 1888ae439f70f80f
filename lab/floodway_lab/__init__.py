"""Floodway's laboratory: benchmarks beside peers, simulation, chaos.

It measures Floodway and tries to prove it wrong. Flows need none of it.
"""
