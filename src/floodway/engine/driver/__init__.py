"""The driver: it launches tasks, leads them through their lives, and says when to do what.

`coordinator` and what it uses are pure; `leader` and `job` have the sockets, threads and clocks.
"""
