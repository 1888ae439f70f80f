"""Which running flow a command is about, and what is said if there is none."""

import typer

from floodway.engine.driver.asking import find_endpoint, read_status
from floodway.engine.metrics.status import Status


def find_status(url: str | None, flow: str | None) -> tuple[str, Status]:
    """Return the address and the status of a running flow; exit with 1 if there is none."""
    address = find_endpoint(flow) if url is None else url.rstrip("/")
    status = None if address is None else read_status(address)
    if address is None or status is None:
        typer.echo(_nothing(url, flow), err=True)
        raise typer.Exit(1)
    return address, status


def _nothing(url: str | None, flow: str | None) -> str:
    if url is not None:
        return f"Nothing answers at {url}."
    if flow is not None:
        return f"No flow {flow!r} is running here."
    return "No flow is running here. A flow on another machine is found with --url."
