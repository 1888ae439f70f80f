"""WordCount: how often each word has come, in all or in windows; and Grep: lines with a word."""

import random
from collections import Counter
from typing import Any

import msgspec

from floodway.demo.sending.lines import HOLE, PREPARED
from floodway_lab.cases.base import Case, Shape, Tally
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.sent import CaseSent
from floodway_lab.systems.events import Text

VOCABULARY = 2_000
"""So many different words there are."""

WORDS = 10
"""So many words are in a line."""

SOUGHT = "flood"
"""What Grep looks for."""

SOUGHT_EVERY = 10
"""One line of so many has it."""

WINDOW_MS = 10_000
"""How long a window of windowed WordCount is."""


_FOR_EVER_MS = 10**15


class _Texts(Case):
    """Lines of ten words; words come as often as in a language."""

    keys = Keys(VOCABULARY, zipf=1.0)

    def lines(self, shape: Shape) -> list[bytes]:
        """Return events of about 100 bytes: time, number, text."""
        rng = random.Random(shape.seed)
        keys, end = shape.keys or self.keys, shape.end()
        known = [b"w%x" % rng.getrandbits(16 + number % 16) for number in range(keys.count)]
        drawn = iter(keys.draw(PREPARED * WORDS, rng))
        found = []
        for number in range(PREPARED):
            words = [known[next(drawn)] for _ in range(WORDS)]
            if number % SOUGHT_EVERY == 0:
                words[number // SOUGHT_EVERY % WORDS] = SOUGHT.encode()
            text = b" ".join(words)
            found.append(b'{"time":%s,"id":%d,"text":"%s"' % (HOLE, number, text) + end)
        return found

    def texts(self, sent: CaseSent) -> list[Text]:
        """Return what was sent, without the times."""
        decode = msgspec.json.Decoder(Text).decode
        return [decode(line.replace(HOLE, b"0")) for line in sent.lines]


class Words(_Texts):
    """How often each word has come so far."""

    name = "words"
    title = "WordCount: ten words a line, 2,000 words as uneven as in a language"

    def hints(self) -> dict[str, Any]:
        """Return nothing: there is nothing to know."""
        return {}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Split each line once, and add up how often it was sent."""
        counts: Counter[str] = Counter()
        for often in sent.times(_FOR_EVER_MS).values():
            for event, times in zip(self.texts(sent), often, strict=True):
                for word in event.text.split(" "):
                    counts[word] += times
        return {(word, 0): count for word, count in counts.items() if count}


class WindowedWords(_Texts):
    """How often each word has come in windows of ten seconds."""

    name = "windowed-words"
    title = "windowed WordCount: the same in windows of 10 s"

    def hints(self) -> dict[str, Any]:
        """Return the windows."""
        return {"window_ms": WINDOW_MS}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Split each line once, and add up how often it was sent in each window."""
        texts = [Counter(event.text.split(" ")) for event in self.texts(sent)]
        found: Counter[tuple[str, int]] = Counter()
        for window, often in sent.times(WINDOW_MS).items():
            for words, times in zip(texts, often, strict=True):
                if times:
                    for word, count in words.items():
                        found[word, window] += times * count
        return dict(found)


class Grep(_Texts):
    """The lines with a word; their numbers are added up for each second."""

    name = "grep"
    title = "Grep: lines that have a word, one of ten"

    def hints(self) -> dict[str, Any]:
        """Return the word."""
        return {"sought": SOUGHT}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Look at each line once."""
        found = [
            event.id if SOUGHT in event.text.split(" ") else None for event in self.texts(sent)
        ]
        tally = Tally()
        for second, often in sent.times(1_000).items():
            for number, times in zip(found, often, strict=True):
                if number is not None and times:
                    tally.add(number, second, times)
        return tally.found()
