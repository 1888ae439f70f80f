"""What can be asked of a description, from Python as on the command line."""

import pytest

from floodway.core.errors import OptionError
from floodway.model.tuning import Tuning
from floodway.plan import Configuration
from floodway.provisioning.cost import Setting
from floodway.provisioning.paper import parse
from floodway.provisioning.planning.described import OnPaper
from floodway.provisioning.planning.questions import (
    Question,
    compare_against,
    compare_without_changes,
    refuse_no_rate,
    refuse_planning,
    reply,
    reply_each,
)

KNOWN = OnPaper(parse("[operators.read]\nrate = 2_500_000\nc_cpu_ns = 1000\nmax_dop = 5"))


def test_range_has_an_answer_or_a_problem_for_each_rate() -> None:
    fits, too_much = reply_each(KNOWN, Question(rates=(1_000_000, 9_000_000)))
    assert fits.answer is not None
    assert (fits.rate, fits.answer.tasks) == (1_000_000, 1)
    assert too_much.answer is None
    assert "read: no configuration reaches this rate" in str(too_much.problem)


def test_answer_is_compared_with_what_was_before_the_changes() -> None:
    question = Question(what_if=["read.c_cpu_ns*=0.5"])
    compared = compare_without_changes(KNOWN, question, reply(KNOWN, question))
    tasks = {each.figure: (each.before, each.after) for each in compared.differences}["tasks"]
    assert tasks == (3, 2)


def test_answer_is_compared_with_a_configuration() -> None:
    found = reply(KNOWN, Question(rates=(4_000_000,)))
    compared = compare_against(
        KNOWN, found, Configuration(Tuning(dop=5)), before="five", after="plan"
    )
    tasks = {each.figure: (each.before, each.after) for each in compared.differences}["tasks"]
    assert (compared.before, compared.after, tasks) == ("five", "plan", (5, 4))


def test_configuration_is_checked_instead_of_planning_one() -> None:
    found = reply(KNOWN, Question(configuration=Configuration(Tuning(dop=2))))
    assert found.minimum is None
    assert found.settings["read"] == Setting(2)
    assert [each.operator for each in found.diagnosis.bottlenecks] == ["read"]


def test_options_are_called_as_users_call_them() -> None:
    with pytest.raises(OptionError, match=r"^<lean> cannot go with <configuration>"):
        refuse_planning(Question(lean=True), lambda option: f"<{option}>")
    with pytest.raises(OptionError) as refused:
        refuse_no_rate(Question(), lambda option: f"<{option}>")
    assert refused.value.remedy == "give <rate>, in records per second, or <max_tasks>"
