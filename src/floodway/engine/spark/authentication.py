"""Whom Spark lets in: nobody without the secret of the run, whatever the master.

Without `spark.authenticate`, whoever reaches the ports of a Spark can fetch the flow, with its keys
and passwords, and stop its tasks; those of a local Spark are reached by every user of the machine.
Local Spark, YARN and Kubernetes make a secret of their own for every context. A
standalone cluster has one for all, which the user has to give.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from floodway.core.errors import EngineError

log = logging.getLogger(__name__)

AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"


def is_local(master: str) -> bool:
    """Return whether a master runs everything on this host.

    >>> is_local("local[4]"), is_local("spark://head:7077")
    (True, False)
    """
    return master.startswith("local")


def authentication(master: str) -> dict[str, str]:
    """Return the settings of a new Spark that lets in nobody else.

    >>> authentication("local[4]")
    {'spark.authenticate': 'true'}
    """
    settings = {AUTHENTICATE: "true"}
    if master.startswith("local-cluster"):  # Spark makes a secret for the others that are local
        settings[SECRET] = secrets.token_hex(32)
    if not is_local(master):
        # The plan and its keys go over a network. Where the other side cannot encrypt, as a master
        # that gets nothing secret, Spark falls back to authentication alone.
        settings["spark.network.crypto.enabled"] = "true"
    return settings


def authenticates(conf: Mapping[str, str] | Any) -> bool:
    """Return whether a Spark with these settings lets in only who knows its secret."""
    return str(conf.get(AUTHENTICATE, "false")).strip().lower() == "true"


def check_secret(master: str, conf: Any) -> None:
    """Refuse a standalone cluster without a secret, unless it is to be open to everybody."""
    if master.startswith("spark:") and authenticates(conf) and not conf.get(SECRET, None):
        raise EngineError(
            f"there is no secret for {master}: without one, everybody who reaches the cluster "
            "could read the flow, with its keys and passwords, and stop it",
            remedy=f"put `{AUTHENTICATE} true` and a `{SECRET}` into conf/spark-defaults.conf of "
            "the master, the workers and this machine, readable only for you; in a network that "
            f"you trust, use --conf {AUTHENTICATE}=false",
        )


def remedy_for(master: str) -> str:
    """Return what to do about a Spark that does not start."""
    if master.startswith("spark:"):
        return (
            "see that the master runs, and that it, its workers and this machine have the same "
            f"{SECRET}; for a cluster that is open to everybody, use --conf {AUTHENTICATE}=false"
        )
    return "run `floodway doctor`, which looks for Java and tries a Spark of its own"


def check_active(master: str, there: Any, given: Mapping[str, str]) -> None:
    """Refuse a cluster's Spark that was made elsewhere and is open; warn of a local one.

    Parameters
    ----------
    there
        The settings of the Spark.
    given
        Those that the flow was given; they can say that it is meant to be open.
    """
    wanted = given.get(AUTHENTICATE, there.get(AUTHENTICATE, None))
    if authenticates(there) or (wanted is not None and not authenticates({AUTHENTICATE: wanted})):
        return
    remedy = (
        f'make it with .config("{AUTHENTICATE}", "true"), or stop it and let Floodway make its own'
    )
    if is_local(master) and wanted is None:
        log.warning(
            "the Spark that is active, %s, does not authenticate: everybody on this machine can "
            "read the flow, with its keys and passwords, and stop it: %s",
            master,
            remedy,
        )
        return
    raise EngineError(
        f"the Spark that is active, {master}, does not authenticate: everybody who reaches it can "
        "read the flow, with its keys and passwords, and stop it",
        remedy=f"{remedy}; in a network that you trust, run the flow with "
        f'conf={{"{AUTHENTICATE}": "false"}}',
    )
