"""Transport: what travels between tasks, how it is batched, and to whom it goes."""
