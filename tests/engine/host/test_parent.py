"""Who made a process: found out also if that one died before anybody looked."""

import subprocess
import sys

import pytest

from floodway.engine.host.parent import Parent

SCRIPT = """
import os, sys, time
from floodway.engine.host.parent import Parent, become_parent

if sys.argv[1] == "said":
    become_parent()
daemon = os.getpid()
if os.fork():
    os._exit(0)  # before the other one has looked
while os.getppid() == daemon:
    time.sleep(0.001)
print(Parent().gone)
"""


@pytest.mark.parametrize(("how", "seen"), [("said", "True"), ("silent", "False")])
def test_an_orphan_knows_its_parent_if_that_has_said_who_it_is(how: str, seen: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == seen


def test_a_process_with_its_parent_is_no_orphan() -> None:
    assert not Parent().gone
