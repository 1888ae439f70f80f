"""The laboratory's commands: they join ``floodway`` through entry points, and ask and print."""
