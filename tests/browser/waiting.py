"""Waiting for a browser and a kernel, each of which takes its time."""

import time


def wait_until(true, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if true():
                return
        except OSError:  # not listening yet
            pass
        time.sleep(0.2)
    raise TimeoutError(f"{what}: not within {seconds} s")


def settled(value, seconds=30):
    """The value once it has not changed for a second."""
    end = time.monotonic() + seconds
    last, since = value(), time.monotonic()
    while time.monotonic() - since < 1 and time.monotonic() < end:
        time.sleep(0.1)
        now = value()
        if now != last:
            last, since = now, time.monotonic()
    return last
