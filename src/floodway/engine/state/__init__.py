"""State that outlives a task: what has changed in an epoch, its files, and rows beyond memory.

`keeper` takes what the kernels of a task have changed, and gives it back to new ones; `files` keeps
it in the vault; `cold` holds the rows for which there is no memory.
"""
