"""Links: whatever a network loses, repeats or delays, frames arrive once and in order."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.transport.links import ANSWER_S, PROBE_S, Links, unnumbered

MOST_TURNS = 2000


class Net:
    """Two processes, a connection each way, and what happens to them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends = [Links("a", now=0), Links("b", now=0)]
        self.ways: list[deque[bytes]] = [deque(), deque()]
        self.got: list[list[bytes]] = [[], []]

    def open(self, end: int) -> None:
        self.ways[end].extend(self.ends[end].open(1 - end, "ba"[end], now=self.now))

    def send(self, end: int, frame: bytes) -> None:
        self.ways[end].append(self.ends[end].number(1 - end, frame))

    def deliver(self, end: int, most: int = 10**9) -> None:
        """Let what an end has sent arrive."""
        for _ in range(min(most, len(self.ways[end]))):
            frame = self.ends[1 - end].take(self.ways[end].popleft(), now=self.now)
            if frame is not None:
                self.got[1 - end].append(frame)
            while self.ends[1 - end].ready:
                self.got[1 - end].append(self.ends[1 - end].ready.popleft())

    def pass_time(self, seconds: float = ANSWER_S) -> None:
        self.now += seconds
        for end, links in enumerate(self.ends):
            self.ways[end].extend(data for _, data in links.turn(now=self.now))

    def settle(self) -> None:
        """Let the network behave until everything is answered."""
        for _ in range(MOST_TURNS):
            self.deliver(0)
            self.deliver(1)
            if all(links.settled() for links in self.ends):
                return
            self.pass_time()
        raise AssertionError("the links do not settle")


steps = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 1), st.integers(1, 20)),
    st.tuples(st.just("deliver"), st.integers(0, 1), st.integers(1, 30)),
    st.tuples(st.just("reset"), st.integers(0, 1), st.integers(1, 30)),
    st.tuples(st.just("repeat"), st.integers(0, 1), st.integers(1, 30)),
    st.tuples(st.just("overtake"), st.integers(0, 1), st.integers(1, 30)),
    st.tuples(st.just("time"), st.integers(0, 1), st.integers(1, 30)),
)


@given(plan=st.lists(steps, max_size=60))
def test_everything_arrives_once_and_in_order(plan: list[tuple[str, int, int]]) -> None:
    net = Net()
    net.open(0)
    net.open(1)
    sent: list[list[bytes]] = [[], []]
    for what, end, count in plan:
        way = net.ways[end]
        match what:
            case "send":
                for _ in range(count):
                    frame = str(len(sent[end])).encode()
                    sent[end].append(frame)
                    net.send(end, frame)
            case "deliver":
                net.deliver(end, count)
            case "reset":  # what the kernels had is gone
                for _ in range(min(count, len(way))):
                    way.popleft()
            case "repeat":
                way.extend(list(way)[:count])
            case "overtake":  # a new connection's frames come before those of the old one
                way.rotate(-count)
            case "time":
                net.pass_time(count * ANSWER_S / 10)
    net.settle()
    assert net.got == [sent[1], sent[0]]


def test_last_frame_that_is_lost_is_asked_for() -> None:
    net = Net()
    net.open(0)
    net.open(1)
    net.settle()
    net.send(0, b"the end")
    net.ways[0].clear()
    net.settle()
    assert net.got[1] == [b"the end"]
    assert net.ends[0].again == 1


def test_first_frame_that_is_lost_reaches_somebody_who_never_heard_of_its_sender() -> None:
    one, other = Links("one", now=0), Links("other", now=0)
    lost = [*one.open(1, "other", now=0), one.number(1, b"hello")]
    assert len(lost) == 2
    [(_, probe)] = one.turn(now=PROBE_S)
    assert other.take(probe, now=1) is None
    [(address, answer)] = other.turn(now=1)
    assert address == "one"  # there is no link to it yet
    one.take(answer, now=1)
    assert [other.take(data, now=1) for _, data in one.turn(now=1)][:2] == [None, b"hello"]


def test_what_is_answered_is_kept_no_longer_and_nothing_is_sent_in_vain() -> None:
    net = Net()
    net.open(0)
    net.open(1)
    for number in range(1000):
        net.send(0, str(number).encode())
        net.deliver(0)
        net.pass_time(ANSWER_S / 50)
        net.deliver(1)
    net.settle()
    net.pass_time(10 * PROBE_S)
    assert not net.ways[0]
    assert not net.ways[1]
    assert net.ends[0].again == 0


def test_who_asks_and_gets_no_answer_misses_something_of_who_should_answer() -> None:
    """Frames of the one are lost, and the way on which the other would say so is blocked."""
    net = Net()
    net.open(0)
    net.open(1)
    net.settle()
    assert not net.ends[1].pending(0, now=net.now)
    net.send(0, b"lost")
    net.ways[0].clear()
    for _ in range(3):
        net.pass_time(PROBE_S)
        net.deliver(0)
        net.ways[1].clear()
        assert net.ends[1].settled()
        assert net.ends[1].pending(0, now=net.now)
    net.settle()
    assert net.got[1] == [b"lost"]
    net.pass_time(2 * PROBE_S)
    assert not net.ends[1].pending(0, now=net.now)


def test_former_process_of_a_number_is_not_answered_any_more() -> None:
    here, former = Links("here", now=0), Links("former", now=0)
    here.open(1, "former", now=0)
    for data in former.open(0, "here", now=0):
        here.take(data, now=0)
    here.open(1, "successor", now=0)
    assert here.take(former.number(0, b"too late"), now=0) is None
    assert here.take(former.probe(0, now=1), now=1) is None
    assert [to for to, _ in here.turn(now=1)] in ([], [1])  # a probe to the successor at most
    assert former.settled() is False


def test_who_has_the_port_of_another_takes_nothing_and_says_so() -> None:
    me, gone, here = Links("me", now=0), Links("port#1", now=0), Links("port#2", now=0)
    sent = [*me.open(5, "port#1", now=0), me.number(5, b"for another")]
    assert [here.take(data, now=0) for data in sent] == [None, None]
    [(to, refusal)] = here.turn(now=0)
    assert (to, me.take(refusal, now=1)) == ("me", None)
    assert me.refused_s(5, now=3) == 2
    [(number, question)] = me.turn(now=1)
    assert (number, here.take(question, now=1), me.again) == (5, None, 0)
    assert [to for to, _ in here.turn(now=1)] == ["me"]
    assert not me.settled(5)
    assert [gone.take(data, now=2) for data in sent] == [None, b"for another"]
    gone.open(0, "me", now=2)
    for _, data in gone.turn(now=2):
        me.take(data, now=2)
    assert (me.refused_s(5, now=3), me.settled(5)) == (0, True)


def test_frame_without_a_number_comes_as_it_is_and_noise_is_passed_on_to_be_counted() -> None:
    links = Links("here", now=0)
    assert links.take(unnumbered(b"a beat"), now=0) == b"a beat"
    assert links.take(b"noise", now=0) == b"noise"


@given(noise=st.lists(st.binary(max_size=60), max_size=20))
def test_noise_breaks_nothing(noise: list[bytes]) -> None:
    net = Net()
    net.open(0)
    net.open(1)
    for number, data in enumerate(noise):
        net.ends[1].take(data, now=net.now)
        net.ends[1].take(bytes(8) + (number % 3).to_bytes(8, "little") + data, now=net.now)
        net.send(0, b"good")
    list(net.ends[1].turn(now=net.now))
    net.settle()
    assert net.got[1] == [b"good"] * len(noise)


def test_what_is_late_is_not_sent_again_and_of_what_is_lost_nothing_twice() -> None:
    """The reader takes few frames in a turn; a new connection has overtaken the old one."""
    frames, lost = 500, 7
    net = Net()
    net.open(0)
    net.open(1)
    net.settle()
    for number in range(frames):
        net.send(0, number.to_bytes(4))
    old = list(net.ways[0])[: frames // 2]
    new = list(net.ways[0])[frames // 2 + lost :]
    new.insert(0, net.ends[0].probe(1, now=net.now))  # asked as soon as the connection stands
    net.ways[0] = deque(data for pair in zip(old, new, strict=False) for data in pair)
    net.ways[0].extend(old[len(new) :])
    for _ in range(MOST_TURNS):
        net.deliver(0, 4)
        net.deliver(1)
        net.pass_time()
        if net.ends[0].settled():
            break
    assert [int.from_bytes(data) for data in net.got[1]] == list(range(frames))
    assert net.ends[0].again == lost


def test_what_is_lost_on_a_slow_link_is_not_sent_again_and_again() -> None:
    """A gap is told of twice a second, and all that was sent after it is still on its way."""
    frames, each, per_turn = 256, 64 * 1024, 2
    net = Net()
    net.open(0)
    net.open(1)
    net.settle()
    for number in range(frames):
        net.send(0, number.to_bytes(4) * (each // 4))
    net.ways[0].popleft()
    for _ in range(MOST_TURNS):
        net.deliver(0, per_turn)
        net.deliver(1)
        net.pass_time()
        if net.ends[0].settled():
            break
    assert [int.from_bytes(data[:4]) for data in net.got[1]] == list(range(frames))
    assert net.ends[0].again == 1
