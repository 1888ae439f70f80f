"""The data engine: events that are due at their time, in a queue outside of what is measured."""
