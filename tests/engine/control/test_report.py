"""Reports survive the journey, also between versions."""

import msgspec
import pytest

from floodway.core.errors import EngineError
from floodway.engine.control.report import TaskReport, decode_report, encode_report
from tests.engine.control.reports import report, source_report


def test_report_comes_back() -> None:
    sent = source_report(1.0)
    assert decode_report(encode_report(sent)) == sent


def test_unknown_fields_are_skipped() -> None:
    fields = msgspec.to_builtins(report())
    assert decode_report(msgspec.msgpack.encode(fields | {"mood": "calm"})) == report()


def test_missing_fields_have_defaults() -> None:
    required = {
        field.name: getattr(report(), field.name)
        for field in msgspec.structs.fields(TaskReport)
        if field.required
    }
    assert decode_report(msgspec.msgpack.encode(required)) == report()


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode({"stage": 1})])
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        decode_report(data)
