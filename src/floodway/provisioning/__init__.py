"""How many tasks, and what batch sizes: a cost model, and plans made with it.

`cost` is the model and its algorithms; they need nothing but numbers. `paper` reads the numbers
from a file, for planning before there is a flow. `picture` draws a graph with its loads, and
`applying` turns what was planned into a configuration that a flow runs with.

Nothing is imported here, so that planning on paper does not load the engine.
"""
