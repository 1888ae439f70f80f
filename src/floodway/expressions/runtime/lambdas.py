"""Quantifiers over the answers of a function, in three-valued logic."""


def exists(answers: list[bool | None]) -> bool | None:
    """Whether one is true; unknown if one is unknown."""
    return True if True in answers else None if None in answers else False


def forall(answers: list[bool | None]) -> bool | None:
    """Whether all are true; unknown if one is unknown and none is false."""
    return False if False in answers else None if None in answers else True
