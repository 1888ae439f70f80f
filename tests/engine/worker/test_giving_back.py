"""Memory that was freed goes back to the machine, also if it lies between things that stay."""

import os

import psutil
from floodway_lab.figures.soak import own_pages

from floodway.engine.worker.giving_back import give_back

MIB = 2**20


def test_holes_are_given_back() -> None:
    own = psutil.Process(os.getpid())
    # Blocks too large for Python's own pools, too small for mappings of their own.
    blocks = [bytearray(b"x") * 65_536 for _ in range(1024)]
    del blocks[:-1:2]  # every other one, and not the last: there is no free end
    before = own_pages(own)
    give_back()
    assert before - own_pages(own) > 16 * MIB
    assert len(blocks) == 512
