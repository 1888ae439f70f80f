"""A flow that counts words, as the text of a file to fill in."""

FLOW = """\
import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource

flow = fw.Flow({flow!r})
words = flow.source("words", JsonLinesSource("in.jsonl"), schema=str)
counts = words.group_by({by!r}).count(name={counts!r})
counts.changes(name="changes").to(JsonLinesSink("out"), name="results")
"""
