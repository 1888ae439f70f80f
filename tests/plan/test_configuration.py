"""The configuration: who has the say, and what a file may hold."""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import Flow
from floodway.core.errors import DurationError, OptionError
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.plan.configuration import DEFAULT


def flow(**said: Any) -> Flow:
    made = Flow("tuned")
    made.source("numbers", schema=int).map("value + 1", name="more").tune(**said).to("out")
    return made


NUMBERS = st.none() | st.integers(1, 9)
TUNINGS = st.builds(
    Tuning,
    b_out=NUMBERS,
    linger=st.sampled_from([None, 0, 5, "1s"]),
    batching=st.sampled_from([None, "shared", "distinct"]),
)


@given(TUNINGS, TUNINGS, TUNINGS)
def test_configuration_before_flow_before_default(own: Tuning, said: Tuning, rest: Tuning) -> None:
    built = flow(b_out=said.b_out, linger=said.linger, batching=said.batching)
    found = Configuration(rest, {"more": own}).of(built)["more"]
    for option in ("b_out", "linger", "batching"):
        choices = [getattr(tuning, option) for tuning in (own, said, rest, DEFAULT)]
        assert getattr(found, option) == next(c for c in choices if c is not None)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_dop_asked_for_comes_before_the_default(
    own: int | None, said: int | None, rest: int | None
) -> None:
    made = Plan.of(flow(dop=said), Configuration(Tuning(dop=rest), {"more": Tuning(dop=own)}))
    assert made.stage_of("more").dop == (own or said or rest or 1)
    assert made.stage_of("numbers").dop == (rest or 1)


def test_what_is_said_later_in_the_flow_holds() -> None:
    built = flow(b_out=5, linger="1s")
    built.tuned("more", Tuning(b_out=6))
    found = Configuration().of(built)["more"]
    assert (found.b_out, found.linger) == (6, "1s")


def test_plan_knows_batch_sizes_and_lingers() -> None:
    made = Plan.of(flow(b_out=5, linger="1s", batching="shared"))
    assert (made.b_out("more"), made.linger_ms("more"), made.batching("more")) == (
        5,
        1000,
        "shared",
    )
    assert (made.b_out("out"), made.linger_ms("out"), made.batching("out")) == (100, 0, "distinct")


GOOD = """
dop = 2
linger = "5ms"

[operators.more]
dop = 3
b_out = 500
batching = "shared"
isolate = true
"""


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    path.write_text(GOOD)
    assert Configuration.read(path) == Configuration(
        Tuning(dop=2, linger="5ms"),
        {"more": Tuning(dop=3, b_out=500, batching="shared", isolate=True)},
    )


BAD = {
    "no TOML": b"dop = ",
    "no text": b"\xff\xfe\x00",
    "unknown option": b"dop = 2\nspeed = 9",
    "unknown option of an operator": b"[operators.more]\nspeed = 9",
    "text for a number": b'dop = "two"',
    "fraction for a number": b"b_out = 2.5",
    "unknown scheme": b'batching = "both"',
    "operators that are no table": b"operators = 3",
    "operator that is no table": b"[operators]\nmore = 3",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_bad_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    path.write_bytes(content)
    with pytest.raises(OptionError, match=r"flow\.toml cannot be read") as caught:
        Configuration.read(path)
    assert "[operators.NAME]" in caught.value.remedy


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        Configuration.read(tmp_path / "none.toml")


@given(st.binary(max_size=40))
def test_any_file_is_a_configuration_or_an_error(content: bytes) -> None:
    class AsPath:  # as much of a path as is asked for
        def read_text(self, encoding: str) -> str:
            return content.decode(encoding)

    with suppress(OptionError):
        Configuration.read(AsPath())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tuning", "error", "match"),
    [
        (Tuning(dop=0), OptionError, "dop=0 is not a number"),
        (Tuning(b_out=-1), OptionError, "b_out=-1 is not a number"),
        (Tuning(b_out=True), OptionError, "b_out=True is not a number"),
        (Tuning(linger="soon"), DurationError, "soon"),
        (Tuning(linger=-5), DurationError, "linger"),
        (Tuning(batching="both"), OptionError, "batching='both'"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("where", ["default", "operator"])
def test_bad_tuning_names_the_operator(tuning: Tuning, error: Any, match: str, where: str) -> None:
    configuration = (
        Configuration(tuning) if where == "default" else Configuration(operators={"more": tuning})
    )
    with pytest.raises(error, match=match) as caught:
        Plan.of(flow(), configuration)
    assert caught.value.operator in ("numbers", "more", "out")
    assert caught.value.place is not None


def test_unknown_operator_is_refused() -> None:
    with pytest.raises(OptionError, match="'less' that the flow does not have") as caught:
        Plan.of(flow(), Configuration(operators={"less": Tuning(dop=2)}))
    assert caught.value.remedy == "use one of: more, numbers, out"


def test_written_configuration_is_read_as_it_was(tmp_path: Path) -> None:
    written = Configuration(
        Tuning(dop=2, linger="5ms"),
        {
            'a "name"\nof two lines': Tuning(b_out=500, batching="shared", isolate=True),
            "counts 🌊": Tuning(dop=3, linger=20, paradigm="data"),
        },
    )
    file = tmp_path / "configuration.toml"
    file.write_text(written.to_toml(), encoding="utf-8")
    assert Configuration.read(file) == written


def test_linger_that_is_a_duration_is_written_in_milliseconds() -> None:
    assert Configuration(Tuning(linger=timedelta(seconds=2))).to_toml() == "linger = 2000\n"


def test_configuration_that_makes_no_sense_for_any_flow_names_the_operator() -> None:
    with pytest.raises(OptionError, match="b_out=0 is not a number of at least 1") as error:
        Configuration(operators={"counts": Tuning(b_out=0)}).check()
    assert error.value.operator == "counts"
