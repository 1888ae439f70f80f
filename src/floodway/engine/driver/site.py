"""The site of a flow: the Spark it runs in, how its tasks talk there, and where it can be asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from floodway.engine.spark.authentication import is_local
from floodway.engine.spark.context import Lease
from floodway.engine.transport.sockets import CurveKeys, Network
from floodway.plan.stages import Plan

Transport = Literal["auto", "ipc", "tcp"]
"""How tasks talk: Unix sockets on one host, TCP with CURVE between hosts; auto asks the master."""


class Site(NamedTuple):
    """What a user says of where a flow is to run."""

    master: str | None
    conf: Mapping[str, str]
    transport: Transport
    metrics_port: int | None

    def lease(self, plan: Plan) -> Lease | None:
        """Take slots of Spark for the tasks of a plan; none, if all of them run in this process."""
        if not plan.tasks:
            return None
        return Lease.take(plan.flow, plan.tasks, master=self.master, conf=self.conf)

    def network(self, lease: Lease | None, folder: Path, *, announce: str) -> Network:
        """Return the network of tasks in leased slots, and of the driver.

        Parameters
        ----------
        folder
            Where the sockets are, on one host.
        announce
            The host under which all reach each other, with TCP, if not the one they listen on.
        """
        context = lease.context if lease is not None else None
        local = context is None or is_local(context.master)
        if self.transport == "ipc" or (self.transport == "auto" and local):
            return Network(folder=str(folder))
        host = "127.0.0.1"
        if context is not None:
            host = context.getConf().get("spark.driver.host", host)
        return Network(host=host, keys=CurveKeys.make(), towards=host, announce=announce)
