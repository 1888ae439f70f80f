import io

from floodway_lab.cli.versus import show_comparison
from rich.console import Console

from tests.lab.reports.factory import MODELS, eventful, everybody, made_comparison, made_system


def shown(found, width=160):
    out = io.StringIO()
    show_comparison(found, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_caveats_come_before_any_system():
    text = shown(eventful())
    for caveat in eventful().caveats:
        assert text.index(caveat) < text.index("events/s")


def test_every_system_has_a_line():
    firsts = {line.split()[0] for line in shown(everybody()).splitlines() if line.strip()}
    assert set(MODELS) <= firsts


def test_line_has_rate_interval_latencies_link_and_answers():
    (line,) = (line for line in shown(eventful()).splitlines() if "415,900" in line)
    assert line.split("  ")[0] == "bytewax"
    for part in ("391,900 to 439,900", "6.2 / 24", "11 / 44", "35 / 135", "tcp", "right"):
        assert part in line


def test_ratios_have_intervals_and_the_best_peer_is_named():
    text = shown(eventful())
    assert "1.93x (1.80 to 2.07)" in text
    assert "what the fastest peer does (Bytewax 0.21.1)" in text


def test_partial_results_are_the_first_thing_said():
    found = made_comparison([made_system("floodway-dual", rounds=1)], complete=False)
    assert shown(found).startswith("Partial results")


def test_void_runs_and_systems_left_out_are_told():
    text = shown(eventful())
    assert "left out: Pathway 0.33.0: the system ended with code 1" in text
    assert "void: Bytewax 0.21.1, round 2, 10 % load: the machine was too loaded" in text


def test_text_in_brackets_is_not_taken_for_a_style():
    found = made_comparison([made_system("loop")], caveats=["[bold]as it is[/bold]"])
    assert "[bold]as it is[/bold]" in shown(found)
