"""What a flow's operators cost on this machine, found by running them for some seconds.

A sample of the flow's own input (`sampling`) is repeated until it lasts (`repeating`) and read by
the flow in place of its sources (`replay`), with batches of several sizes (`running`). From how
long tasks worked for how many records and batches follow the costs of the model (`fitting`), and
from those a graph to plan with (`describing`). What was found on a machine is kept (`keeping`).
"""
