"""The operation stream: what a task collects, and merges of what was made of it elsewhere."""
