"""The cost model once more, slowly and exactly, sharing no code with the one under test.

An operator copes if its tasks have time enough in each second: a fetch for each batch that arrives,
c_cpu for each record and an emit for each batch that leaves; and if the bytes fit through their
connections. With fractions there is no rounding.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from floodway.provisioning.cost import CostGraph

SECOND = 10**9


class Exact:
    """A graph and a workload as fractions."""

    def __init__(self, graph: CostGraph, workload: Mapping[str, float]) -> None:
        self.graph = graph
        self.rate_in: dict[str, Fraction] = {}
        self.rate_out: dict[str, Fraction] = {}
        for name in graph.in_order():
            if not graph.inputs[name]:
                self.rate_in[name] = Fraction(workload[name])
            else:
                parts = (
                    self.rate_out[link.producer] * Fraction(link.share)
                    for link in graph.inputs[name]
                )
                self.rate_in[name] = sum(parts, start=Fraction(0))
            selectivity = Fraction(graph.operators[name].selectivity)
            self.rate_out[name] = self.rate_in[name] * selectivity

    def tasks_needed(self, name: str, batches: Mapping[str, int]) -> Fraction:
        """How many tasks' worth of time and bandwidth an operator takes, not rounded."""
        graph = self.graph
        operator, platform = graph.operators[name], graph.platform
        busy = self.rate_in[name] * Fraction(operator.c_cpu_ns)
        bytes_in = bytes_out = Fraction(0)
        for link in graph.inputs[name]:
            rate = self.rate_out[link.producer] * Fraction(link.share)
            busy += rate / batches[link.producer] * Fraction(platform.c_fetch_ns)
            bytes_in += rate * Fraction(graph.operators[link.producer].record_bytes)
        for link in graph.outputs[name]:
            bytes_out += (
                self.rate_out[name] * Fraction(link.share) * Fraction(operator.record_bytes)
            )
        if graph.outputs[name]:
            busy += self.rate_out[name] / batches[name] * Fraction(platform.c_emit_ns)
        needed = [busy / SECOND]
        for octets, bits in (
            (bytes_in, platform.in_bits_per_s),
            (bytes_out, platform.out_bits_per_s),
        ):
            if bits != math.inf:
                needed.append(8 * octets / Fraction(bits))
        return max(needed)

    def copes(self, dops: Mapping[str, int], batches: Mapping[str, int]) -> bool:
        """Whether no operator is a bottleneck, if it gets all of its input."""
        return all(self.tasks_needed(name, batches) <= dop for name, dop in dops.items())

    def fewest_tasks(self, largest_batch: int) -> int:
        """The fewest tasks that cope, over all batch sizes up to the largest."""
        return min(
            sum(self._fewest(name, batches) for name in self.graph.operators)
            for batches in self._all_batches(largest_batch)
        )

    def _fewest(self, name: str, batches: Mapping[str, int]) -> int:
        needed = self.tasks_needed(name, batches)
        return next(dop for dop in itertools.count(1) if needed <= dop)

    def _all_batches(self, largest: int) -> Iterator[dict[str, int]]:
        senders = [name for name, links in self.graph.outputs.items() if links]
        for sizes in itertools.product(range(1, largest + 1), repeat=len(senders)):
            yield dict(zip(senders, sizes, strict=True))
