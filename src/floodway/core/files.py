"""Files that others read: whole, or not there."""

import os
import secrets
import stat
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever finds a part of it, even if this process is killed.

    What is no regular file (a pipe, a terminal) is written to as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answer.json"
    ...     write_whole(file, b"[1]")
    ...     write_whole(file, b"[2]")
    ...     file.read_bytes(), len(list(Path(folder).iterdir()))
    (b'[2]', 1)
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()  # a link stays one
    # Nobody else can have put something there before, in a folder that others write to.
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    exclusive = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = os.open(part, exclusive, 0o666 if mode is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(descriptor, mode)  # what only its owner may read stays so
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
