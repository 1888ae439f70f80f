"""Numbers in tables: short, and always about as wide."""


def show_count(number: float) -> str:
    """Return a number of at most six characters.

    Examples
    --------
    >>> [show_count(n) for n in (0, 7.4, 999, 1234, 56_789, 999_960, 4_000_000, 1e12)]
    ['0', '7.4', '999', '1.23k', '56.8k', '1.00M', '4.00M', '1000G']
    """
    for unit in ("", "k", "M"):
        if number < 999.5:
            return _digits(number, exact=not unit) + unit
        number /= 1000
    return _digits(number, exact=False) + "G"


def _digits(number: float, *, exact: bool) -> str:
    """Return three digits of a number; a small whole number has nothing behind its point."""
    if exact and (number == int(number) or number >= 99.95):
        return f"{number:.0f}"
    if exact:
        return f"{number:.1f}"
    return (
        f"{number:.2f}"
        if number < 9.995
        else f"{number:.1f}"
        if number < 99.95
        else f"{number:.0f}"
    )


def show_time(microseconds: float) -> str:
    """Return a time of at most six characters.

    Examples
    --------
    >>> [show_time(us) for us in (3, 940, 1_240, 61_000, 5_200_000, 90_000_000, 7_300_000_000)]
    ['3µs', '940µs', '1.2ms', '61ms', '5.2s', '90s', '2h01m']
    """
    if microseconds >= 100e6:
        return show_age(microseconds / 1e6)
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size * 0.9995:
            value = microseconds / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{microseconds:.0f}µs"


def show_age(seconds: float) -> str:
    """Return a longer time in two units.

    Examples
    --------
    >>> [show_age(s) for s in (8.4, 75, 3_700, 200_000)]
    ['8s', '1m15s', '1h01m', '2d07h']
    """
    whole = max(0, int(seconds))
    for size, unit, part, small in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02}{small}"
    return f"{whole}s"
