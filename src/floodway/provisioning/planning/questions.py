"""What is asked of a description: how to plan it or what to check, at which rates, and what if.

The command line and `floodway.Flow.plan` ask the same questions; they only call the options by
other names.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from floodway.core.errors import OptionError
from floodway.plan.configuration import Configuration
from floodway.provisioning.cost import Settings
from floodway.provisioning.paper import Paper
from floodway.provisioning.planning.answers import (
    Answer,
    Comparison,
    Step,
    Wishes,
    answer,
    answer_range,
    compare_with,
)
from floodway.provisioning.planning.changes import changed, with_rate
from floodway.provisioning.planning.described import Described
from floodway.provisioning.planning.refusing import refuse_beside

Called = Callable[[str], str]
"""What users call an option: `in_python`, or as they have written it elsewhere."""


def in_python(option: str) -> str:
    """Return what an option is called in a program.

    >>> in_python("max_tasks")
    'max_tasks='
    """
    return f"{option}="


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to know.

    Attributes
    ----------
    rates
        Records per second, all sources together: one, or a range of them; by default, as the
        description says.
    max_tasks, max_b_out, lean, headroom
        How to plan; see `Wishes`. Without a rate, `max_tasks` asks for the largest rate.
    cores
        The cores of a server, if they are others.
    what_if
        Changes of the description; see `changed`.
    configuration
        What to check instead of planning.
    """

    rates: Sequence[float] = ()
    max_tasks: int | None = None
    max_b_out: int | None = None
    lean: bool = False
    headroom: float = 0.0
    cores: int | None = None
    what_if: Sequence[str] = ()
    configuration: Configuration | None = None

    @property
    def wishes(self) -> Wishes:
        """How to plan."""
        return Wishes(
            headroom=self.headroom,
            max_b_out=self.max_b_out,
            lean=self.lean,
            max_tasks=self.max_tasks,
            largest=self.max_tasks is not None and not self.rates,
        )


def refuse_planning(
    question: Question, called: Called = in_python, also: Mapping[str, object] | None = None
) -> None:
    """Refuse to be told how to plan, as beside a configuration that is to be checked.

    Parameters
    ----------
    called
        What users call an option.
    also
        Other options that are about planning, as users call them, with what they say.
    """
    options = {name: getattr(question, name) for name in ("max_tasks", "max_b_out", "lean")}
    planning = {called(name): value for name, value in options.items()} | dict(also or {})
    why = "it is checked as it is, and nothing is planned"
    refuse_beside(planning, called("configuration"), why)


def refuse_no_rate(question: Question, called: Called = in_python) -> None:
    """Refuse to plan a flow for nothing: it does not say what is expected, as a file does."""
    if not question.rates and question.max_tasks is None:
        raise OptionError(
            "a flow does not say how many records are expected",
            remedy=f"give {called('rate')}, in records per second, or {called('max_tasks')}",
        )


def reply(known: Described, question: Question) -> Answer:
    r"""Plan, or check the configuration, at the first of the rates.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> from floodway.provisioning.planning.described import OnPaper
    >>> known = OnPaper(parse("[operators.read]\nrate = 2_500_000\nc_cpu_ns = 1000"))
    >>> [reply(known, Question(rates=rates)).tasks for rates in ((), (4e6,))]
    [3, 4]
    """
    paper = _asked(_changed(known, question), question)
    return answer(paper, question.wishes, _settings(known, question.configuration))


def reply_each(known: Described, question: Question) -> list[Step]:
    """Plan, or check the configuration, at each of the rates; one may have no answer."""
    settings = _settings(known, question.configuration)
    return answer_range(_changed(known, question), question.rates, question.wishes, settings)


def compare_without_changes(known: Described, question: Question, found: Answer) -> Comparison:
    """Compare an answer with that to the same question without any what-if."""
    paper = _asked(changed(known.paper, (), cores=question.cores), question)
    return compare_with(found, paper, _settings(known, question.configuration))


def compare_against(
    known: Described,
    found: Answer,
    configuration: Configuration,
    *,
    before: str = "before",
    after: str = "after",
) -> Comparison:
    """Compare an answer with what a configuration makes of the same workload."""
    settings = known.settings(configuration)
    return compare_with(found, found.paper, settings, before=before, after=after)


def _changed(known: Described, question: Question) -> Paper:
    return changed(known.paper, question.what_if, cores=question.cores)


def _asked(paper: Paper, question: Question) -> Paper:
    return with_rate(paper, question.rates[0]) if question.rates else paper


def _settings(known: Described, configuration: Configuration | None) -> Settings | None:
    return None if configuration is None else known.settings(configuration)
