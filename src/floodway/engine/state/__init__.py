"""State that outlives a task: what has changed in an epoch, and rows beyond memory.

`keeper` takes what the kernels of a task have changed, and gives it back to new ones; `cold` holds
the rows for which there is no memory.
"""
