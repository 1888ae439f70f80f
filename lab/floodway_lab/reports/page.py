"""A comparison as one page of HTML: what to keep in mind first, then figures and charts."""

from floodway.demo.html import (
    cell,
    element,
    figure,
    note,
    section,
    table,
    titles,
    whole_page,
    words,
)
from floodway_lab.reports import pictures
from floodway_lab.reports.facts import (
    LATE,
    OWN,
    RATE,
    all_runs,
    answers,
    best_peers,
    caveats,
    late_at,
    measured,
    ordered,
    partial,
    rate_interval,
    ratio,
    rounds_done,
    show_ms,
    show_rate,
    show_rates,
    show_ratio,
    voids,
    why_not,
)
from floodway_lab.reports.looks import look_of
from floodway_lab.runs.comparing import LOADS, Compared, Comparison, Ratio


def comparison_page(found: Comparison) -> str:
    """Return a page that needs nothing else, not even a network."""
    count = len(found.systems)
    title = f"{found.title}: {count} system{'' if count == 1 else 's'} side by side"
    missing = partial(found)
    return whole_page(
        title,
        element("h1", words(title)),
        element("p", words(f"{_asked(found)}, {found.machine.date}"), class_="sub"),
        element("p", words(missing), class_="warning", role="alert") if missing else "",
        _caveats(found),
        _set_up(found),
        _summary(found),
        _ratios(found),
        _throughput(found),
        _distributions(found),
        _over_time(found),
        _paradigms(found),
        _tuning(found),
        _left_out(found),
        _voids(found),
    )


def _asked(found: Comparison) -> str:
    return found.command or f"floodway bench compare {found.case}"


def _caveats(found: Comparison) -> str:
    items = "".join(element("li", words(each)) for each in caveats(found))
    head = element("h2", words("Before you read on"))
    return element("section", head, element("ul", items), class_="caveats")


# --------------------------------------------------------------------------- set-up


def _set_up(found: Comparison) -> str:
    on = found.machine
    rows = {
        "machine": f"{on.processor}, {on.cores} cores, {on.memory_gib:g} GiB",
        "load before": f"{on.load_before:g}",
        "software": f"Floodway {on.floodway}, Python {on.python}",
        **_workload(found),
        **_noise(found),
    }
    lines = (element("tr", element("th", words(n)), cell(text)) for n, text in rows.items())
    return section("Machine and set-up", table("", lines))


def _workload(found: Comparison) -> dict[str, str]:
    how = found.experiment
    keys = how.shape.keys
    shape = [
        "keys as the workload has them"
        if keys is None
        else f"{keys.count:,} keys, {keys.hot:.0%} of events on one, Zipf {keys.zipf:g}",
        f"payload {how.shape.payload:,} bytes",
        f"{how.shape.disorder.share:.0%} of events late",
        f"seed {how.shape.seed}",
    ]
    return {
        "workload": f"{found.title} ({found.case}); results: {how.store}",
        "events": "; ".join(shape),
        "parallelism": f"data engines: {how.engines}; tasks of a system: {how.dop}",
        "rounds": f"{rounds_done(found)}; runs of {how.seconds:g} s, "
        f"of which the first {how.warm_s:g} s do not count; schedule {how.schedule}",
        "sustained": f"queue of at most {how.acceptable_s:g} s of the rate at any time "
        "(Algorithm 1's c_a)",
    }


def _noise(found: Comparison) -> dict[str, str]:
    runs = [run for of in found.systems for _, _, run in all_runs(of)]
    if not runs:
        return {}
    foreign, jitter = max(run.foreign for run in runs), max(run.jitter_ms.p99 for run in runs)
    return {
        "noise": f"others had up to {foreign:.0%} of the cores (void above "
        f"{found.experiment.most_foreign:.0%}); 99 of 100 events were generated at most "
        f"{show_ms(jitter)} ms late, in the worst run"
    }


# --------------------------------------------------------------------------- summary


def _summary(found: Comparison) -> str:
    loads = [f"ms at {100 * load:.0f} % load" for load in LOADS]
    first = "".join(
        element("th", words(name), rowspan="2", class_=kind)
        for name, kind in (("system", "t"), ("events/s", "n"))
    )
    groups = "".join(element("th", words(name), colspan="2", class_="n group") for name in loads)
    last = "".join(
        element("th", words(name), rowspan="2", class_="t") for name in ("answers", "link")
    )
    below = "".join(element("th", words(q), class_="n") for _ in LOADS for q in ("p50", "p99"))
    head = element("tr", first, groups, last) + element("tr", below)
    return section(
        "Summary",
        element("p", words(" ".join(best_peers(found)))),
        table(head, (_summary_row(of) for of in ordered(found))),
        note(
            "Events/s: the sustainable rate, and within which bounds it lies in 95 of 100 cases. "
            "Load is a part of each system's own sustainable rate, so a faster system is given "
            "more events at the same load: point at a latency to see how many."
        ),
    )


def _summary_row(of: Compared) -> str:
    row = "own" if of.system == OWN else "other"
    if why := why_not(of):
        missing = element("td", words(f"left out: {why}"), colspan="7", class_="sub why")
        return element("tr", _name(of), missing, cell("-"), cell(of.link), class_=row)
    rate = cell(show_rate(of.sustainable_rate or 0.0), "n", sub=show_rates(rate_interval(of)))
    word = answers(of)
    kind = {"right": "good", "WRONG": "bad"}.get(word, "sub")
    latencies = "".join(_latency_cells(of, load) for load in LOADS)
    return element("tr", _name(of), rate, latencies, cell(word, kind), cell(of.link), class_=row)


def _latency_cells(of: Compared, load: float) -> str:
    late = late_at(of, load)
    if late is None:
        return cell("-", "n") * 2
    tip = f"at {show_rate(late.rate)} events/s"
    return cell(show_ms(late.p50), "n", tip=tip) + cell(show_ms(late.p99), "n", tip=tip)


def _name(of: Compared, *, short: bool = False) -> str:
    swatch = element("span", class_="swatch", style=f"background: {look_of(of.system).colour}")
    name = element("span", swatch, words(of.system), class_="name")
    return element("td", name, "" if short else element("div", words(of.title), class_="sub"))


def _ratios(found: Comparison) -> str:
    title = f"{OWN} against each of the others"
    if not found.ratios:
        return section(title, note(f"There are none: {OWN} and another have to be measured both."))
    rows = []
    for of in ordered(found):
        both = [ratio(found, what, of.system) for what in (RATE, LATE)]
        if any(both):
            rows.append(
                element("tr", _name(of, short=True), *(_ratio_cells(each) for each in both))
            )
    head = titles("against", RATE, "verdict", LATE, "verdict", numeric=(RATE, LATE))
    return section(
        title,
        table(head, rows),
        note(
            "Ratios are taken within a round, where the machine was the same for both, and "
            "then averaged. If the interval contains 1, or there is none, the verdict is not clear."
        ),
        *(
            element("h3", words(what)) + figure(pictures.against(found, what))
            for what in (RATE, LATE)
        ),
    )


def _ratio_cells(of: Ratio | None) -> str:
    if of is None:
        return cell("-", "n") + cell("")
    verdict, kind = "not clear", "sub"
    if of.interval is not None and not of.interval[0] <= 1 <= of.interval[1]:
        more = of.value > 1
        verdict = "higher" if more else "lower"
        kind = "good" if more == (of.what == RATE) else "bad"
    return cell(show_ratio(of.value, of.interval), "n") + cell(verdict, kind)


# --------------------------------------------------------------------------- charts


def _throughput(found: Comparison) -> str:
    return section(
        "Sustainable rate",
        figure(pictures.throughput(found)),
        note("Whiskers are the bounds in 95 of 100 cases, dots are single rounds."),
    )


def _distributions(found: Comparison) -> str:
    return section(
        f"Latency at {100 * LOADS[0]:.0f} % load",
        figure(pictures.distributions(found, LOADS[0])),
        figure(pictures.tails(found, LOADS[0])),
        note(
            "The second chart shows the same from its other end: where a line crosses 1 %, 99 of "
            "100 results had come. Names are in the order of half of the results; point at a line "
            "or a name to see it alone."
        ),
    )


def _over_time(found: Comparison) -> str:
    load = LOADS[-1]
    panels = pictures.over_time(found, load)
    title = f"Latency over time, at {100 * load:.0f} % load"
    if not panels:
        return section(title, note("No run at this load has shown any."))
    told = note(
        "Solid: p50 of each second. Dashed: p99. All have the same axes; time is of the run."
    )
    return section(title, told, element("div", *map(figure, panels), class_="panels"))


def _paradigms(found: Comparison) -> str:
    title = f"How the stages of {OWN} worked"
    own = next((of for of in measured(found) if of.system == OWN), None)
    if own is None:
        return section(title, note(f"{OWN} was not measured."))
    shown, calm = [], []
    for number, load, run in all_runs(own):
        name = f"round {number}, {100 * load:.0f} % load"
        chart = pictures.paradigms(run, f"Paradigms of {OWN}, {name}")
        if chart:
            shown.append(element("h3", words(name)) + figure(chart))
        else:
            calm.append(name)
    told = "Only stages that were told to switch are shown. " if shown else ""
    if calm:
        told += f"No stage switched in {'; '.join(calm)}."
    return section(title, *shown, note(told or "There were no runs."))


# --------------------------------------------------------------------------- the rest


def _tuning(found: Comparison) -> str:
    rows = [
        element(
            "tr",
            _name(of),
            cell(of.tuning or "nothing is said about it"),
            element("td", element("code", words(", ".join(of.versions) or "those of Floodway"))),
            cell(of.link),
        )
        for of in ordered(found)
    ]
    return section(
        "Tuning and versions", table(titles("system", "set-up", "versions", "link"), rows)
    )


def _left_out(found: Comparison) -> str:
    rows = [
        element("tr", _name(of), cell(why, "why")) for of in ordered(found) if (why := why_not(of))
    ]
    content = table(titles("system", "why"), rows) if rows else note("None.")
    return section("Systems left out", content)


def _voids(found: Comparison) -> str:
    rows = [
        element(
            "tr",
            cell(void.title),
            cell(str(void.number), "n"),
            cell(f"{100 * void.load:.0f} %", "n"),
            cell(void.why, "why"),
        )
        for void in voids(found)
    ]
    head = titles("system", "round", "load", "why", numeric=("round", "load"))
    return section("Void runs", table(head, rows) if rows else note("None."))
