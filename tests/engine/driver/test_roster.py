"""The roster: who has come, as which process, and who has left."""

from floodway.engine.control.messages import Hello
from floodway.engine.driver.roster import Roster


def roster() -> Roster:
    return Roster({0: ("one", 0), 1: ("both", 0), 2: ("both", 1)})


def hello(task: int, pid: int) -> Hello:
    return Hello(task, 0, f"at {task}", pid, "here", "machine", 1)


def test_a_process_that_comes_again_takes_nobodys_place_and_another_does() -> None:
    who = roster()
    assert not who.came(hello(1, 7))
    assert not who.came(hello(1, 7))
    assert who.came(hello(1, 8))
    assert who.process(1) == ("here", 8)


def test_of_a_lost_process_nothing_is_known_and_its_successor_is_new() -> None:
    who = roster()
    who.came(hello(1, 7))
    assert who.relaunch(1) == who.launch(1) == 1
    assert (who.hello(1), who.address(1), who.whereabouts(1)) == (None, None, None)
    assert not who.came(hello(1, 8))


def test_who_is_there_has_come_and_not_left() -> None:
    who = roster()
    who.came(hello(2, 7))
    who.came(hello(0, 8))
    who.leave(0)
    assert who.missing == [("both", 0)]
    assert (who.there, who.staying, set(who.come)) == ([2], {1, 2}, {0, 2})
    assert who.addresses == ["at 0", "", "at 2"]
