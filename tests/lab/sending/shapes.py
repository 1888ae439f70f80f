"""Schedules of every shape, with all there is to a shape left to chance."""

from floodway_lab.sending.schedules import Bursts, Constant, Ramp, Schedule, Sine, Step
from hypothesis import strategies as st

from floodway.demo.sending.schedules import Recorded

RATES = st.floats(1, 1e6)
TIMES = st.floats(0.1, 100)

SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Constant, RATES),
    st.builds(lambda a, b, s, n: Step(a, b, start_s=s, stop_s=s + n), RATES, RATES, TIMES, TIMES),
    st.builds(lambda a, b, t: Bursts(a, b, every_s=t, lasting_s=t / 3), RATES, RATES, TIMES),
    st.builds(lambda a, t: Sine(a, swing_per_s=a * 0.9, period_s=t), RATES, TIMES),
    st.builds(Ramp, RATES, RATES, TIMES),
    st.builds(Recorded, st.lists(RATES, min_size=1).map(tuple), TIMES),
)
