"""The data stream engine: tasks that take records as they come."""
