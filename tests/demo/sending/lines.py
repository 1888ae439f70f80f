"""What a note of lines says was sent."""

from floodway.demo.sending.lines import Stretch

T0 = 1_700_000_000_000


def told(sent: list[Stretch]) -> bytes:
    return b"".join(
        b"%d,%d;\n" % (number, stretch.time_ms)
        for stretch in sent
        for number in range(stretch.first, stretch.first + stretch.count)
    )
