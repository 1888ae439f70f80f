"""A mark: the sign in a stream that carries stream time and ends epochs."""

import msgspec


class Mark(msgspec.Struct, frozen=True):
    """What a mark says: stream time, what the clock shows (milliseconds), if an epoch ends here."""

    stream_time: int | None = None
    clock: int | None = None
    commit: bool = False


encode_mark = msgspec.msgpack.Encoder().encode
decode_mark = msgspec.msgpack.Decoder(Mark).decode
