"""What a flow goes back to: files that notice damage, commit records, output caches, sink logs.

Also what becomes of a checkpoint when the flow has changed (`upgrade`) or gets another number of
tasks (`rescale`).
"""
