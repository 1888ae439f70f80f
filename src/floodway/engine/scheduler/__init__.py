"""The central scheduler: which stages flood, what is done about it, and why.

A pure state machine: loads and the time go in, decisions come out (`scheduler`). First the batches
on the way get larger (`batching`); if that is not enough, the flooded stage (`switch_point`) and
those it floods in turn (`switch_range`) are switched to the operation paradigm, and back when the
flood has passed. Every decision is told with the numbers that made it (`story`).

Nothing is imported here, as everywhere in the engine.
"""
