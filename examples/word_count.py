"""Word count: split lines into words and count each word, without windows.

Shows: a source of plain strings, ``flat_map`` with ``explode``, a count that goes on for ever, and
a subscriber that hears only of words seen at least twice.

Run it: ``python examples/word_count.py``
"""

import floodway as fw
from floodway.testing import Driver

LINES = [
    "the river is calm",
    "the river rises",
    "the flood passes and the river is calm",
]


def build() -> fw.Flow:
    flow = fw.Flow("word_count")
    lines = flow.source("lines", schema=str)
    words = lines.flat_map("explode(split(lower(value), ' '))", name="words")
    counts = words.group_by("value AS word").count(name="counts")
    counts.filter("count >= 2", name="frequent").changes().to("frequent_words")
    return flow


def main() -> None:
    with Driver(build()) as driver:
        driver.push("lines", *LINES)
    counts = driver.table("counts").values()
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count} {word}")
    print()
    for record in driver.read("frequent_words"):
        print(f"{record.value.key} has been seen {record.value.value} times")


if __name__ == "__main__":
    main()
