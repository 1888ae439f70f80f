"""The nonce: how tasks know that the folder they see is the one that the driver means.

The driver writes something that nobody can guess into the folder and tells it to the tasks, each
of which reads it there before it says hello. A path that leads elsewhere on another host, to a disk
of its own or to an old copy, is found out before anything is kept in it. And a driver that finds
another's nonce knows that it is not alone.
"""

import secrets
import time

from floodway.core.errors import EngineError
from floodway.engine.checkpoint.vault import FolderVault, Vault

NONCE = "nonce"

STALE_SECONDS = 3.0
"""A host may show the former content of a file on a network for so long."""


def write_nonce(vault: Vault) -> str:
    """Write a new nonce and return it."""
    nonce = secrets.token_hex(16)
    vault.write(NONCE, nonce.encode())
    return nonce


def read_nonce(vault: Vault) -> str | None:
    """Return the nonce that is there, or None."""
    try:
        return vault.read(NONCE).decode(errors="replace")
    except EngineError:
        return None


def sees_nonce(vault: FolderVault, nonce: str) -> bool:
    """Return whether a vault is the one in which a nonce was written.

    One in which there is another, perhaps the former, is looked at for a while.
    """
    deadline = time.monotonic() + STALE_SECONDS
    while (found := read_nonce(vault)) != nonce:
        if found is None or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
