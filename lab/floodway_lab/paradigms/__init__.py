"""Both paradigms and the switch between them, on the same events."""
