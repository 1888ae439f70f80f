"""What the scheduler decides."""

import msgspec

from floodway.model.tuning import Paradigm


class SetBatch(msgspec.Struct, frozen=True, tag=True):
    """Let an operator's output be batched differently from now on; nothing stops for it."""

    operator: str
    b_out: int


class SwitchTo(msgspec.Struct, frozen=True, tag=True):
    """Let a stage work in the other paradigm; to be answered with `switched` or `failed`."""

    stage: str
    paradigm: Paradigm


Decision = SetBatch | SwitchTo
