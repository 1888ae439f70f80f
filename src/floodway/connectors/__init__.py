"""Connectors: where records come from and where results go, one file each."""
