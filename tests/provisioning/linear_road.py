"""The thesis's Linear Road flow (figure 4.10) with the costs of table 4.2, on paper."""

from floodway.provisioning.paper import Paper, parse

TEXT = """
[platform]
c_fetch_ns = 7400
c_emit_ns = 2600

[operators.spout]
rate = 500_000
c_cpu_ns = 1000
record_bytes = 107

[operators.parse]
from = "spout"
c_cpu_ns = 3500
selectivity = 0.99
record_bytes = 32

[operators.agg]
from = { operator = "parse", partitioning = "hash" }
c_cpu_ns = 2600
selectivity = 0.0003
record_bytes = 24

[operators.block]
from = { operator = "agg", partitioning = "hash" }
c_cpu_ns = 5000
selectivity = 0.002
record_bytes = 16

[operators.mv]
from = { operator = "agg", partitioning = "hash" }
c_cpu_ns = 7000
record_bytes = 24

[operators.toll]
from = { operator = "mv", partitioning = "hash" }
c_cpu_ns = 4500
record_bytes = 20
"""

NAMES = ["spout", "parse", "agg", "block", "mv", "toll"]


def linear_road() -> Paper:
    return parse(TEXT)
