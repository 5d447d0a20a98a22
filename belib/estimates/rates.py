"""What a machine does in a second: measured in about one, or assumed and marked so."""

import functools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from belib import runs
from belib.config import OfflineConfig, PretrainConfig
from belib.envs import Environment, primal_task
from belib.estimates.counting import Counting, Operator
from belib.machine import keep_freed_memory, products
from belib.offline.td3 import TD3
from belib.replay import Batch
from belib.training.collection import Collection

Operators = Iterable[tuple[Operator, int]]
"""Operators, each with how often it is called."""

clock = time.thread_time
"""Time of the calling thread on a core, also while it waits for torch's other threads: what a busy
machine does for others is left out, and estimates are for an otherwise idle one."""

_EDGES = (64, 256, 1024)  # of products: what they do in a second depends on their size
_WIDTH = 24  # of thin ones
_NUMBERS = (2**10, 2**14, 2**18, 2**22)  # of arrays that a pass goes over: caches hold some
_UPDATES = (16, 64, 256, 512)  # batches and widths of the updates that all this is held against


class Rates(NamedTuple):
    """Speeds that turn counted operators into seconds."""

    products: dict[str, tuple[tuple[float, float], ...]]
    """By shape and type (`thin float32`): (FLOPs of one product, FLOPs a second), ascending."""
    passes: tuple[tuple[float, float], ...]
    """(bytes an operator goes over, bytes a second)."""
    draw: float
    """Seconds a random number."""
    order: float
    """Seconds a number that is ordered."""
    overhead: float
    """Seconds an operator takes whatever its size."""
    write: float
    """Bytes a second that a checkpoint is written with."""
    source: str
    """`measured` here, or the machine whose published numbers are assumed."""
    factor: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """(seconds an operator, real over computed seconds): caches, Python, and what else there is."""
    overlaps: bool = False
    """Whether updates run while environments step, as on a card."""

    def seconds(self, operators: Operators) -> float:
        """Of all operators, one after the other."""
        plain, number = self.plain(operators), sum(number for _, number in operators)
        return plain * _between(self.factor, plain / number) if number else 0.0

    def plain(self, operators: Operators) -> float:
        """By the rates alone, each of which was measured on operators of one kind."""
        return sum(number * self._seconds(operator) for operator, number in operators)

    def _seconds(self, operator: Operator) -> float:
        if operator.kind == "view":
            return self.overhead
        if operator.kind in ("draw", "order"):
            return self.overhead + operator.amount * getattr(self, operator.kind)
        if operator.each:
            rate = _between(self.products[operator.kind], operator.each)
            return self.overhead + operator.amount / rate
        return self.overhead + operator.nbytes / _between(self.passes, operator.nbytes)


def calibrate(precision: str = "float32") -> Rates:
    """Measure this machine in about a second; kept for the process and torch's thread count.

    Args:
        precision: of products beside float32, whose rate is measured too.
    """
    return _calibrated(precision, torch.get_num_threads())


@functools.cache
def _calibrated(precision: str, threads: int) -> Rates:
    keep_freed_memory()
    with torch.no_grad():
        known = {
            f"{shape} {name}": tuple(_product_rate(edge, inner or edge, name) for edge in _EDGES)
            for name in ("float32", "bfloat16")[: 1 + (precision == "bfloat16")]
            for shape, inner in (("square", None), ("thin", _WIDTH))
        }
        passes = tuple(_pass_rate(numbers) for numbers in _NUMBERS)
        draw = _least(lambda: torch.randn(2**17)) / 2**17
        scores, one = torch.randn(512, 512), torch.ones(1)
        order = _least(lambda: scores.topk(12, largest=False)) / scores.numel()
        overhead = _least(lambda: [one.add_(0) for _ in range(1000)]) / 1000
    plain = Rates(known, passes, draw, order, overhead, _write_rate(), "measured")
    return plain._replace(factor=tuple(_held_against(plain, n, precision) for n in _UPDATES))


def _product_rate(edge: int, inner: int, name: str) -> tuple[float, float]:
    """FLOPs of a product over `inner` numbers; FLOPs a second of a few of them side by side."""
    flops = 2.0 * edge**2 * inner
    count = max(1, int(2e7 // flops))
    one = torch.randn(count, edge, inner).to(getattr(torch, name))
    two = one.mT.contiguous()
    with products("float32"):
        seconds = _least(lambda: torch.bmm(one, two))
    return flops, count * flops / seconds


def _pass_rate(numbers: int) -> tuple[float, float]:
    """Bytes an operator, bytes a second: a sum, a ReLU and a tanh of as many numbers."""
    one, two = torch.randn(2, numbers)
    repeats = max(1, 2**14 // numbers)

    def passes() -> None:
        for _ in range(repeats):
            # Only the time is of use.
            one + two, one.relu(), one.tanh()  # pyright: ignore[reportUnusedExpression]

    nbytes = 4 * numbers * (3 + 2 + 2)
    return nbytes / 3, repeats * nbytes / _least(passes)


def _write_rate() -> float:
    """Bytes a second of a checkpoint."""
    state = {"numbers": torch.randn(2**21)}
    with tempfile.TemporaryDirectory() as folder:
        size, seconds = runs.save_checkpoint([Path(folder)], state)
        return size / seconds


def _held_against(plain: Rates, size: int, precision: str) -> tuple[float, float]:
    """Computed seconds an operator of an update of TD3, and its real over its computed seconds."""
    config = OfflineConfig(hidden_dim=size, batch_size=size, precision=precision)
    shapes = ((_WIDTH,), (6,), (), (), (_WIDTH,))
    batch = Batch(*(torch.rand(1, size, *shape) for shape in shapes))
    with Counting() as counting:
        hollow = TD3(_WIDTH, 6, [config])
        counting.operators.clear()
        hollow.update(batch)
    learner, number = TD3(_WIDTH, 6, [config]), counting.operators.total()
    computed = plain.plain(counting.operators.items())
    return computed / number, _least(lambda: learner.update(batch)) / computed


class StepSeconds(NamedTuple):
    """What an environment costs; always measured here, whatever the networks run on."""

    load: float
    """To make one."""
    collect: float
    """A step of one member's collection: environment, all rewards, records, replay."""
    step: float
    """A step of the environment alone, as in evaluations."""


@functools.cache
def step_seconds(domain: str) -> StepSeconds:
    """Measure a domain's environment over 100 steps."""
    config = PretrainConfig(domain=domain, objective="random")
    with tempfile.TemporaryDirectory() as folder:  # for episodes, where a domain has short ones
        collection = Collection([config], [Path(folder)])
        collect = statistics.median(_times(collection.advance, 100))
    begin = clock()
    env = Environment(primal_task(domain), 0)
    load = clock() - begin
    env.reset()
    action = np.zeros(env.action_dim)
    step = statistics.median(_times(lambda: env.step(action), 100))
    return StepSeconds(load, collect, step)


def _least(function: Callable[[], object], repeats: int = 7, most: float = 0.15) -> float:
    """Seconds of a call that nothing else disturbs; fewer are tried where they take `most` seconds.

    Other processes take caches away too, so that the least is compared.
    """
    function()
    return min(_times(function, repeats, most))


def _times(function: Callable[[], object], repeats: int, most: float = math.inf) -> list[float]:
    found: list[float] = []
    started = time.perf_counter()  # on a busy machine threads wait for each other, long
    while not found or (len(found) < repeats and time.perf_counter() - started < most):
        begin = clock()
        function()
        found.append(clock() - begin)
    return found


def _between(known: tuple[tuple[float, float], ...], size: float) -> float:
    """The rate at a size, on straight lines between the logarithms of those known."""
    sizes, rates = zip(*known, strict=True)
    return math.exp(np.interp(math.log(size or 1), np.log(sizes), np.log(rates)))
