"""Folders that outlast a loss of power."""

import os


def sync_folder(folder: str) -> None:
    """Make sure that names in a folder outlast a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
