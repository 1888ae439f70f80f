"""Digests and checksums."""

from floodway.core.types import LONG, STRING
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import hashes

define = definer("Hashes")

define("md5", "data BINARY", STRING, hashes.md5_hex, "the MD5 digest in hexadecimal")
define("sha1, sha", "data BINARY", STRING, hashes.sha1_hex, "the SHA-1 digest in hexadecimal")
define(
    "sha2",
    "data BINARY, bits INT",
    STRING,
    hashes.sha2_hex,
    "the SHA-2 digest of 224, 256 (or 0), 384 or 512 bits; NULL for others",
    nullable=True,
)
define("crc32", "data BINARY", LONG, hashes.checksum, "the CRC-32 checksum", bounds=(0, 2**32 - 1))
