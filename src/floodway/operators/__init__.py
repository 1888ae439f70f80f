"""The operators of a flow: one operator, one file, with its description and its kernel."""
