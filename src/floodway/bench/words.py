"""Two workloads of text: counting words, and finding lines with a word in them.

A line is a JSON object with its time and about ten words. Words come as often as in a language: the
second half as often as the first, the third a third as often.
"""

import json
import random
import time
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import floodway as fw
from floodway.bench.supplies import PREPARED, PROBES, Lines, Supply, probe_name
from floodway.bench.timing import PROBE
from floodway.connectors.base import Row, SinkConnector, SourceConnector, Split, Writer
from floodway.core.schema import Schema

VOCABULARY = 2_000
"""So many different words there are, beside the probes."""

WORDS = 10
"""So many words are in a line."""

SOUGHT = "flood"
"""What `grep` looks for; every second line has it."""

HOT = "hot"
"""Every second word of a line, if there is to be a hot key."""


class Line(fw.Record, frozen=True):
    """A line of text."""

    event_time: int
    text: str


def make_texts(count: int, *, hot: bool = False, sought: bool = False, seed: int = 1) -> list[str]:
    """Return texts of about ten words.

    Examples
    --------
    >>> [len(text.split()) for text in make_texts(3)]
    [10, 10, 10]
    >>> [SOUGHT in text for text in make_texts(4, sought=True)]
    [True, False, True, False]
    """
    rng = random.Random(seed)
    known = [f"w{rng.getrandbits(20 + number % 16):x}-{number}" for number in range(VOCABULARY)]
    weights = [1 / (number + 1) for number in range(VOCABULARY)]
    texts = []
    for number in range(count):
        words = rng.choices(known, weights, k=WORDS)
        if hot:
            words[::2] = [HOT] * len(words[::2])
        if sought and number % 2 == 0:
            words[number % WORDS] = SOUGHT
        texts.append(" ".join(words))
    return texts


def probe_text(number: int) -> str:
    """Return the text of a probe: a word of its own, what is sought, and words as in any line."""
    return f"{probe_name(number)} {SOUGHT} " + make_texts(1)[0].split(maxsplit=2)[2]


class _Texts(Supply):
    def __init__(self, texts: Sequence[str]) -> None:
        probes = [probe_text(number) for number in range(PROBES)]
        self._texts = texts
        super().__init__(
            Lines([Line(0, text) for text in texts]), [Lines([Line(0, text)]) for text in probes]
        )

    def sent(self) -> Counter[str]:
        """Return how often each text was sent."""
        sent: Counter[str] = Counter()
        for text, times in zip(self._texts, self.lines.sent(), strict=True):
            sent[text] += times
        for number, probe in enumerate(self.probes):
            sent[probe_text(number)] += probe.sent()[0]
        return sent


class Words(_Texts):
    """Lines whose words are counted; with `hot`, half of the words are one."""

    def __init__(self, *, hot: bool = False) -> None:
        super().__init__(make_texts(PREPARED, hot=hot))

    def counts(self) -> Counter[tuple[str, int]]:
        """Return how often each word was sent."""
        counts: Counter[tuple[str, int]] = Counter()
        for text, times in self.sent().items():
            for word in text.split(" "):
                counts[word, 0] += times
        return +counts


class HotWords(Words):
    """Lines of which half of the words are one."""

    def __init__(self) -> None:
        super().__init__(hot=True)


class Matches(_Texts):
    """Lines of which half have a word that is sought."""

    def __init__(self) -> None:
        super().__init__(make_texts(PREPARED, sought=True))

    def counts(self) -> Counter[tuple[str, int]]:
        """Return how often each line that has the word was sent."""
        return +Counter({(text, 0): n for text, n in self.sent().items() if SOUGHT in text})


@dataclass(frozen=True)
class TallySink(SinkConnector):
    """Times probes as `TimingSink` does, and writes at the end what it was sent.

    Parameters
    ----------
    folder
        Where the files go, one of each kind for each task.
    lines
        Whether lines come, which are counted; or changes of counts, of which the last holds.
    """

    folder: str
    lines: bool = False

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer with files of its own."""
        kind = _LineWriter if self.lines else _CountWriter
        return kind(Path(self.folder), split.index)


class _TallyWriter(Writer, ABC):
    def __init__(self, folder: Path, index: int) -> None:
        self._path = folder / f"tally-{index}.json"
        self._timings = (folder / f"timings-{index}").open("ab", buffering=0)

    def _note(self, times: Sequence[int], now_us: int) -> None:
        if times:
            found = array("q", [number for time_ms in times for number in (time_ms, now_us)])
            self._timings.write(found.tobytes())

    @abstractmethod
    def tally(self) -> dict[str, int]:
        """Return how often each name was seen."""

    def close(self) -> None:
        self._timings.close()
        self._path.write_text(json.dumps(self.tally()))


class _CountWriter(_TallyWriter):
    def __init__(self, folder: Path, index: int) -> None:
        super().__init__(folder, index)
        self._last: dict[str, int] = {}

    def write(self, rows: Sequence[Row]) -> None:
        now_us = time.time_ns() // 1000
        self._last.update((row[1], row[2].value) for row in rows)
        self._note([row[0] for row in rows if row[1].startswith(PROBE)], now_us)

    def tally(self) -> dict[str, int]:
        return self._last


class _LineWriter(_TallyWriter):
    def __init__(self, folder: Path, index: int) -> None:
        super().__init__(folder, index)
        self._seen: Counter[str] = Counter()

    def write(self, rows: Sequence[Row]) -> None:
        now_us = time.time_ns() // 1000
        self._seen.update([row[2].text for row in rows])
        self._note([row[0] for row in rows if row[2].text.startswith(PROBE)], now_us)

    def tally(self) -> dict[str, int]:
        return self._seen


def tallied(folder: str | Path) -> Counter[tuple[str, int]]:
    """Return what the tasks of a `TallySink` have written."""
    counts: Counter[tuple[str, int]] = Counter()
    for path in Path(folder).glob("tally-*.json"):
        counts.update({(name, 0): n for name, n in json.loads(path.read_text()).items()})
    return counts


def count_words(lines: SourceConnector, sink: SinkConnector) -> fw.Flow:
    """Return the flow that counts words, and says each count as soon as it changes."""
    flow = fw.Flow("words")
    counts = (
        flow.source("lines", lines, schema=Line, timestamp="event_time", on_error="skip")
        .flat_map("explode(split(text, ' '))", name="words")
        .group_by("value")
        .count(name="counts")
    )
    counts.changes(emit=fw.emit.latest(), name="latest").to(sink, name="results")
    return flow


def grep(lines: SourceConnector, sink: SinkConnector) -> fw.Flow:
    """Return the flow that finds lines with a word in them."""
    flow = fw.Flow("grep")
    found = flow.source("lines", lines, schema=Line, timestamp="event_time", on_error="skip")
    found.filter(f"text LIKE '%{SOUGHT}%'", name="matching").to(sink, name="results")
    return flow
