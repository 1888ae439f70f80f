"""What went through the operators of a task: counted where it happens, reported as it is."""

import msgspec


class OperatorCounts(msgspec.Struct, frozen=True, gc=False):
    """What went through one operator of the task's chain.

    Attributes
    ----------
    name
        The operator's name.
    records_in, records_out
        Records it took and records it gave.
    late
        Records that came too late and were left out.
    skipped
        Records that failed and were skipped, as its ``on_error`` policy says.
    dead_letters
        Records that failed and went to a dead-letter sink.
    undated
        Records of a source that should have brought a timestamp and had none: they got the time to
        which the source had come, or at which they came in if none had one yet.
    returns
        How often a source was idle and came back behind stream time. The driver knows, not tasks.
    inputs
        Records taken at each input, of an operator that has several.
    first_error
        How the first record failed, without anything of the record; None if none has.
    duplicates
        Records that an operator left out because of others that it remembers: duplicates.
    dropped
        Records that the policy of its task's queue dropped, and that it never saw.
    """

    name: str
    records_in: int = 0
    records_out: int = 0
    late: int = 0
    skipped: int = 0
    dead_letters: int = 0
    undated: int = 0
    inputs: tuple[int, ...] = ()
    first_error: str | None = None
    returns: int = 0
    duplicates: int = 0
    dropped: int = 0
