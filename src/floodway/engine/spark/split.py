"""Sharing out: blocks are cut into pieces, so that every slot has as much to do as the others."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from floodway.engine.control.messages import Offer

LEAST = 2000
"""A slot that would get fewer records than this is not worth a task."""


class Piece(NamedTuple):
    """A part of a block; `offer` says whose, by its place among the offers."""

    offer: int
    start: int
    stop: int
    records: int


def share(offers: Sequence[Offer], slots: int, *, least: int = LEAST) -> list[list[Piece]]:
    """Share blocks out among at most so many slots; return the pieces of each.

    All blocks are laid end to end. What lies between two neighbouring cuts goes to the slot in
    whose even share its middle lies, so every slot has pieces that belong together, in order.

    >>> offers = [
    ...     Offer(0, 1, 1, "a", [(0, 0), (50, 10), (90, 20), (130, 30)], b""),
    ...     Offer(1, 1, 1, "b", [(0, 0), (70, 10)], b""),
    ... ]
    >>> share(offers, 2, least=1)
    [[Piece(offer=0, start=0, stop=90, records=20)], \
[Piece(offer=0, start=90, stop=130, records=10), Piece(offer=1, start=0, stop=70, records=10)]]
    """
    whole = sum(offer.cuts[-1][1] for offer in offers)
    parts = max(min(slots, whole // least), 1)
    shares: list[list[Piece]] = [[] for _ in range(parts)]
    passed = 0
    for number, offer in enumerate(offers):
        for (start, before), (stop, after) in pairwise(offer.cuts):
            if stop > start:
                twice_middle = 2 * passed + before + after
                part = min(twice_middle * parts // (2 * whole), parts - 1) if whole else 0
                _add(shares[part], Piece(number, start, stop, after - before))
        passed += offer.cuts[-1][1]
    return [pieces for pieces in shares if pieces]


def _add(pieces: list[Piece], piece: Piece) -> None:
    """Add a piece, to the last one if it continues that."""
    if pieces and (pieces[-1].offer, pieces[-1].stop) == (piece.offer, piece.start):
        last = pieces[-1]
        pieces[-1] = last._replace(stop=piece.stop, records=last.records + piece.records)
    else:
        pieces.append(piece)
