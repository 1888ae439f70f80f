"""Digests and checksums."""

import hashlib
import zlib

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def md5_hex(data: bytes) -> str:
    """Return the MD5 digest."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def sha1_hex(data: bytes) -> str:
    """Return the SHA-1 digest."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def sha2_hex(data: bytes, bits: int) -> str | None:
    """Return a SHA-2 digest, or None for a size there is not."""
    name = _SHA2.get(bits)
    return None if name is None else hashlib.new(name, data).hexdigest()


def checksum(data: bytes) -> int:
    """Return the CRC-32 checksum."""
    return zlib.crc32(data)
