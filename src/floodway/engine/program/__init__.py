"""The wiring of a stage: its operators as nodes, what comes in, and what leads out.

Tasks work with it, and so do the remote halves of micro-batches, keepers of state, and rescaling.
"""
