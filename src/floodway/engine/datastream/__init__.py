"""The data stream: the task, and the form in which it takes records as they come."""
