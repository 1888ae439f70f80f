"""Systems under test: each runs in a process of its own, written as its documentation advises."""
