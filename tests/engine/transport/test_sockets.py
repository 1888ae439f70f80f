"""Sockets: frames reach who is connected now, and what is no frame is counted and dropped."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import zmq
from floodway_lab.chaos.relay import Relay

from floodway.core.errors import EngineError
from floodway.engine.transport.frame import MAX_BYTES, Kind, make_frame
from floodway.engine.transport.sockets import (
    MARK,
    RECONNECT_MS,
    CurveKeys,
    Mailbox,
    Network,
    connect_to,
)
from tests.waiting import DEADLINE_S, wait_for


@pytest.fixture(params=["ipc", "tcp"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Network:
    if request.param == "tcp":
        return Network(host="127.0.0.1", keys=CurveKeys.make())
    return Network(folder=str(tmp_path_factory.mktemp("s")))


@pytest.fixture
def boxes(network: Network) -> Iterator[list[Mailbox]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Mailbox(network, name)) for name in ("a", "b", "c")]


def frame(text: str) -> bytes:
    return make_frame(Kind.CONTROL, text.encode())


def received(box: Mailbox, count: int = 1, *, sender: Mailbox | None = None) -> list[str]:
    """Wait for so many frames; return what they say.

    Where connections break, a sender has to look after what it has sent.
    """
    found: list[str] = []

    def come() -> bool:
        if sender is not None:
            assert not list(sender.drain(100))
        found.extend(bytes(data[len(frame("")) :]).decode() for _, data in box.drain(100))
        return len(found) >= count

    wait_for(come, f"{count} frames")
    return found


def test_frames_arrive_in_order(boxes: list[Mailbox]) -> None:
    one, other, _ = boxes
    one.connect(7, other.address)
    for number in range(100):
        one.send(7, frame(str(number)))
    assert received(other, 100) == [str(number) for number in range(100)]


def test_way_to_another_address_replaces_the_former(boxes: list[Mailbox]) -> None:
    sender, old, new = boxes
    sender.connect(7, old.address)
    sender.send(7, frame("to the old one"))
    assert received(old) == ["to the old one"]
    sender.connect(7, new.address)
    sender.send(7, frame("to the new one"))
    assert received(new) == ["to the new one"]
    assert list(old.drain(10)) == []


def test_way_back_to_a_former_address_works(boxes: list[Mailbox]) -> None:
    sender, one, other = boxes
    for number, target in enumerate((one, other, one)):
        sender.connect(7, target.address)
        sender.send(7, frame(str(number)))
        assert received(target) == [str(number)]


def test_way_to_the_same_address_is_kept_with_all_that_is_on_it(boxes: list[Mailbox]) -> None:
    sender, target, _ = boxes
    for number in range(50):
        sender.connect(7, target.address)
        sender.send(7, frame(str(number)))
    assert received(target, 50) == [str(number) for number in range(50)]


def test_ways_of_others_are_left_alone(boxes: list[Mailbox]) -> None:
    sender, one, other = boxes
    sender.connect(1, one.address)
    sender.connect(2, one.address)
    sender.send(1, frame("before"))
    assert received(one) == ["before"]
    sender.connect(2, other.address)
    sender.send(1, frame("after"))
    assert received(one) == ["after"]


def test_what_was_meant_for_one_that_is_gone_does_not_keep_the_sender(network: Network) -> None:
    with Mailbox(network, "sender") as sender:
        with Mailbox(network, "gone") as gone:
            sender.connect(7, gone.address)
        for _ in range(100):
            sender.send(7, frame("x" * 1000))  # never waits
        with Mailbox(network, "next") as following:
            sender.connect(7, following.address)
            sender.send(7, frame("hello"))
            assert received(following) == ["hello"]


def test_what_is_no_frame_is_counted_and_dropped(network: Network) -> None:
    with Mailbox(network, "a") as box:
        context = zmq.Context()
        way = connect_to(context, network, box.address)
        for data in (b"", b"too short", *map(network.loose, (b"\xff" * 40, frame("fine")))):
            way.send(data)
        assert received(box) == ["fine"]
        assert box.bad_frames == 3
        way.close(0)
        context.term()


def test_waiting_ends_with_a_frame_or_with_a_descriptor(boxes: list[Mailbox]) -> None:
    sender, box, _ = boxes
    sender.connect(7, box.address)
    sender.send(7, frame("wake"))
    box.wait(DEADLINE_S * 1000)
    assert received(box) == ["wake"]
    reading, writing = os.pipe()
    box.watch(reading)
    os.write(writing, b"x")
    box.wait(DEADLINE_S * 1000)
    box.unwatch(reading)
    for descriptor in (reading, writing):
        os.close(descriptor)


def test_frame_that_nobody_would_take_is_refused(boxes: list[Mailbox]) -> None:
    sender, target, _ = boxes
    sender.connect(7, target.address)
    with pytest.raises(EngineError, match=f"{2 * MAX_BYTES:,} bytes .* larger than") as caught:
        sender.send(7, bytes(2 * MAX_BYTES))
    assert "smaller" in caught.value.remedy
    sender.send(7, frame("next"))
    assert received(target) == ["next"]


def test_inbox_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be opened"):
        Mailbox(Network(folder=str(tmp_path / "missing")), "a")
    with pytest.raises(EngineError, match="too long"):
        Mailbox(Network(folder=str(tmp_path / ("x" * 100))), "a")


def test_stranger_is_not_let_in() -> None:
    keys = CurveKeys.make()
    with Mailbox(Network(host="127.0.0.1", keys=keys), "a") as box:
        other = CurveKeys(*zmq.curve_keypair())
        context = zmq.Context()
        stranger = context.socket(zmq.PUSH)
        stranger.curve_publickey, stranger.curve_secretkey = other.public, other.secret
        stranger.curve_serverkey = keys.public
        stranger.connect(box.address.partition(MARK)[0])
        known = Network(keys=keys)
        stranger.send(known.loose(frame("let me in")))
        friend = connect_to(context, known, box.address)
        friend.send(known.loose(frame("it is me")))
        assert received(box) == ["it is me"]
        assert list(box.drain(10)) == []
        for way in (stranger, friend):
            way.close(0)
        context.term()


def test_frames_arrive_once_and_in_order_while_connections_are_reset() -> None:
    rounds, each = 40, 50
    with ExitStack() as stack:
        relay = stack.enter_context(Relay())
        network = Network(host="127.0.0.1", keys=CurveKeys.make(), announce=relay.host)
        one, other = (stack.enter_context(Mailbox(network, name)) for name in ("one", "other"))
        one.connect(1, other.address)
        other.connect(0, one.address)
        relay.delay_s = 0.01  # so that something is on its way when the connections break
        found: list[str] = []

        def exchange() -> bool:
            list(one.drain(1000))
            frames = list(other.drain(1000))
            found.extend(bytes(data[len(frame("")) :]).decode() for _, data in frames)
            return bool(frames)

        for number in range(rounds):
            for index in range(each):
                one.send(1, frame(f"{number}.{index}" + "x" * 2000))
            wait_for(exchange, "frames")
            if number % 4 == 0:
                relay.reset()
        wait_for(lambda: not exchange() and one.settled(), "answers to everything")
        assert found == [f"{n}.{i}" + "x" * 2000 for n in range(rounds) for i in range(each)]
        assert one.sent_again > 0
        assert relay.resets >= rounds // 4


def test_connection_that_is_gone_is_noticed_and_so_is_that_it_is_back() -> None:
    with ExitStack() as stack:
        relay = stack.enter_context(Relay())
        network = Network(host="127.0.0.1", keys=CurveKeys.make(), announce=relay.host)
        one, other = (stack.enter_context(Mailbox(network, name)) for name in ("one", "other"))
        one.connect(1, other.address)
        other.connect(0, one.address)

        def looked() -> bool:
            list(other.drain(10))
            return not list(one.drain(10)) and not one.down()

        wait_for(looked, "a connection")
        relay.part()  # nothing says so: only heartbeats can tell
        wait_for(lambda: not looked(), "the loss of the connection to be noticed")
        one.send(1, frame("meanwhile"))
        relay.join()
        assert received(other, sender=one) == ["meanwhile"]
        wait_for(looked, "the connection to be back")


def test_connection_to_a_dead_end_is_down_all_the_time() -> None:
    """What stands before a host that is gone may accept connections, and hang up on each."""
    with socket.create_server(("127.0.0.1", 0)) as gate:
        gate.setblocking(False)
        hung_up = 0

        def hang_up() -> int:
            nonlocal hung_up
            with suppress(BlockingIOError):
                gate.accept()[0].close()
                hung_up += 1
            return hung_up

        with Mailbox(Network(host="127.0.0.1", keys=CurveKeys.make()), "one") as one:
            one.connect(1, f"tcp://127.0.0.1:{gate.getsockname()[1]}{MARK}x")

            def down_s() -> float:
                hang_up()
                list(one.drain(10))
                return one.down().get(1, 0.0)

            wait_for(lambda: down_s() > 2 * RECONNECT_MS / 1000, "the connection to be down")
            assert hung_up > 2


@pytest.fixture
def same_port(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network in which everybody called "again" gets the same port, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    inbox = Network.inbox
    monkeypatch.setattr(
        Network,
        "inbox",
        lambda self, name: f"tcp://127.0.0.1:{port}" if name == "again" else inbox(self, name),
    )
    return Network(host="127.0.0.1", keys=CurveKeys.make())


def test_successor_that_gets_the_port_of_its_predecessor_is_somebody_else(
    same_port: Network,
) -> None:
    with Mailbox(same_port, "me") as me:
        for text in ("to the first", "to the second"):
            with Mailbox(same_port, "again") as other:
                me.connect(7, other.address)
                other.connect(0, me.address)
                me.send(7, frame(text))
                assert received(other) == [text]
                wait_for(lambda: not list(me.drain(10)) and not list(other.drain(10)), "silence")


def test_task_that_gets_the_port_of_another_is_not_forgotten_with_it(same_port: Network) -> None:
    with Mailbox(same_port, "me") as me, Mailbox(same_port, "elsewhere") as elsewhere:
        with Mailbox(same_port, "again") as five:
            me.connect(5, five.address)
            five.connect(0, me.address)
            five.send(0, frame("of five"))
            assert received(me) == ["of five"]
        with Mailbox(same_port, "again") as seven:
            me.connect(7, seven.address)
            seven.connect(0, me.address)
            seven.send(0, frame("of seven"))
            assert received(me) == ["of seven"]
            me.connect(5, elsewhere.address)
            seven.send(0, frame("and more"))
            assert received(me) == ["and more"]


@pytest.mark.parametrize("heard", [False, True])
def test_who_gets_the_port_of_a_dead_task_takes_nothing_that_was_meant_for_it(
    same_port: Network, heard: bool
) -> None:
    with Mailbox(same_port, "me") as me:

        def down() -> bool:
            list(me.drain(10))
            return 5 in me.down()

        with Mailbox(same_port, "again") as five:
            me.connect(5, five.address)
            wait_for(lambda: not down(), "a connection to five")
            if heard:
                five.connect(0, me.address)
                me.send(5, frame("first"))
                wait_for(lambda: [*five.drain(10), *me.drain(10)] == [] and me.settled(), "answers")
        wait_for(down, "the end of five to be noticed")
        me.send(5, frame("to five"))
        with Mailbox(same_port, "again") as seven:
            seven.connect(0, me.address)
            wait_for(lambda: not down(), "a connection to its port")
            found: list[bytes] = []

            def turned_away() -> bool:
                found.extend(data for _, data in seven.drain(10))
                return bool(found) or me.sent_again > 0 or down()

            wait_for(turned_away, "seven to say that it is not five")
            assert (found, me.sent_again) == ([], 0)
            assert not me.settled(5)
            me.connect(7, seven.address)
            me.send(7, frame("to seven"))
            assert received(seven) == ["to seven"]


def test_keys_are_never_shown() -> None:
    assert repr(CurveKeys.make()) == "CurveKeys(...)"
