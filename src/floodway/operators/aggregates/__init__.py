"""Aggregate functions: how many values become one.

The public functions say *what* to compute; they are resolved against a stream's or table's
columns when the aggregation is built::

    import floodway as fw

    sales.group_by("shop").agg(pieces=fw.sum("pieces"), best=fw.max("price"))
"""

from floodway.operators.aggregates.base import AggregateFunction, AggregateSpec, Resolver
from floodway.operators.aggregates.collect import collect
from floodway.operators.aggregates.combined import combined
from floodway.operators.aggregates.count import count
from floodway.operators.aggregates.custom import aggregate
from floodway.operators.aggregates.extremes import max, min
from floodway.operators.aggregates.mean import mean
from floodway.operators.aggregates.sum import sum
from floodway.operators.aggregates.top import top

__all__ = [
    "AggregateFunction",
    "AggregateSpec",
    "Resolver",
    "aggregate",
    "collect",
    "combined",
    "count",
    "max",
    "mean",
    "min",
    "sum",
    "top",
]
