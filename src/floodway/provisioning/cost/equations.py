"""The equations of the cost model (thesis, chapter 3), one function each.

Times are in nanoseconds, rates in records per second, sizes in bytes, bandwidths in bits per
second. A capacity is a number of *input* records per second, whatever it is that limits it; so
capacities can be compared (definition 28).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

NS = 1e9
"""Nanoseconds in a second."""


class Arrival(NamedTuple):
    """What one producer sends to a consumer: records per second, in what batches, of what size."""

    rate: float
    b_out: float
    record_bytes: float = 0.0


def processing_cost(
    c_cpu: float,
    *,
    c_fetch: float = 0.0,
    c_emit: float = 0.0,
    selectivity: float = 1.0,
    b_in: float = 1.0,
    b_out: float = 1.0,
) -> float:
    """Return what one input record costs, in ns: equation 3.8, and 3.6 where batches are of one.

    Examples
    --------
    >>> processing_cost(3500, c_fetch=7400, c_emit=2600, selectivity=0.99)
    13474.0
    >>> round(
    ...     processing_cost(3500, c_fetch=7400, c_emit=2600, selectivity=0.99, b_in=15, b_out=387)
    ... )
    4000
    """
    return c_fetch / b_in + c_cpu + selectivity * c_emit / b_out


def processing_capacity(cost_ns: float) -> float:
    """Return how many records a task can process at that cost each: equations 3.5 and 3.11.

    Given c_cpu alone it is the bound that no batch size passes (3.10, 3.11).

    Examples
    --------
    >>> processing_capacity(5000)
    200000.0
    """
    return NS / cost_ns if cost_ns else math.inf


def network_capacity(bits_per_s: float, record_bytes: float) -> float:
    """Return how many records a connection carries: equation 3.22.

    Examples
    --------
    >>> network_capacity(1e9, 125)
    1000000.0
    """
    return bits_per_s / (8 * record_bytes) if record_bytes else math.inf


def input_capacity(bits_per_s: float, bytes_in: float) -> float:
    """Return how many records a task can receive: equation 3.28."""
    return network_capacity(bits_per_s, bytes_in)


def output_capacity(
    bits_per_s: float, record_bytes: float, *, fan_out: float, selectivity: float
) -> float:
    """Return how many records a task can take in and still send what becomes of them: 3.33.

    Examples
    --------
    Half of the records pass the filter, and each of them goes to four consumers (example 7):

    >>> output_capacity(8_000, 1, fan_out=4, selectivity=0.5)
    500.0
    """
    return network_capacity(bits_per_s, record_bytes * fan_out * selectivity)


def effective_batch(arrivals: Sequence[Arrival]) -> float:
    """Return over how many records one dequeue operation is shared on average: equation 3.21.

    Where nothing arrives nothing is shared, and the batch size is 1.

    Examples
    --------
    Example 5, which prints it as 6.6:

    >>> round(effective_batch([Arrival(1, 5), Arrival(1, 10)]), 2)
    6.67
    """
    rate = sum(arrival.rate for arrival in arrivals)
    batches = sum(arrival.rate / arrival.b_out for arrival in arrivals)
    return rate / batches if batches else 1.0


def effective_record_bytes(arrivals: Sequence[Arrival]) -> float:
    """Return how large an input record is on average: equation 3.27.

    Examples
    --------
    Example 6:

    >>> round(effective_record_bytes([Arrival(6, 1, 5), Arrival(1, 1, 20)]), 1)
    7.1
    """
    rate = sum(arrival.rate for arrival in arrivals)
    octets = sum(arrival.rate * arrival.record_bytes for arrival in arrivals)
    return octets / rate if rate else 0.0
