"""Whether a machine is ready for Floodway: what can be seen of it, and what to think of that."""
