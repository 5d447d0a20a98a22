"""The calls that `make bench` times: ours, the peers', and the machine's limits."""

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from types import ModuleType
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from coverage import points
from dm_control import suite
from torch.utils.flop_counter import FlopCounterMode

from belib.config import ALGORITHMS, LearnerConfig, OfflineConfig, PretrainConfig
from belib.cost import practice
from belib.coverage import smallest_ball
from belib.envs import Environment
from belib.estimators import shannon_entropy_knn
from belib.knn import knn_distances
from belib.machine import fastest_precision, products

OBS, ACTION = 24, 6  # Walker
Call = Callable[[], object]


class Limit(NamedTuple):
    """A bound on this machine: `times` the duration of a timed call."""

    kind: str
    call: Call
    times: float


class Subject(NamedTuple):
    """A row of the table."""

    what: str
    setting: str
    ours: Call
    limit: Limit | None = None
    target: tuple[str, float] | None = None  # (`of limit` or `over peer`, at least)
    peer: tuple[str, Call] | None = None
    peer_times: int = 1  # calls of the peer for one of ours


class Sizes(NamedTuple):
    """Sizes of the benchmark."""

    paper: int = 1024  # batch and hidden units
    laptop: int = 256
    members: int = 15
    n: int = 10_000  # samples of an estimate; a tenth of a ball's points
    steps: int = 500  # of an environment
    curve: int = 6  # points of a scaling curve, at most


@cache
def peer(name: str) -> ModuleType | None:
    """Return a package to compare with; print a message and return None without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: its columns stay empty", file=sys.stderr)
        return None


def arithmetic(flops: float, precision: str = "float32", edge: int = 1024) -> Limit:
    """Return the limit of `flops` at the rate of a large square product."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    one, two = torch.randn(2, edge, edge).to(dtype)

    def product() -> None:
        with products("float32"):
            one @ two

    return Limit(f"{precision} products", product, flops / (2 * edge**3))


def configs_of(name: str, size: int, members: int, precision: str) -> list[LearnerConfig]:
    """Return members of an algorithm or objective, with batch and hidden layers of one size."""
    shape = {"batch_size": size, "hidden_dim": size, "precision": precision}
    if name in ALGORITHMS:
        return [OfflineConfig(algorithm=name, seed=seed, **shape) for seed in range(members)]
    one = PretrainConfig(objective=name, **shape | {"k": min(12, size - 1)})
    return [replace(one, seed=seed) for seed in range(members)]


def update_of(configs: list[LearnerConfig]) -> Call:
    """Return a call that updates all members on one batch."""
    engine = practice(configs, rows=10_000)
    batch = engine.replay.transitions(engine.replay.draw(configs[0].batch_size, engine.draws))
    return partial(engine.learner.update, batch)


def flops_of(update: Call) -> int:
    """Return the FLOPs counted in a real update."""
    update()
    with FlopCounterMode(display=False) as counter:
        update()
    return counter.get_total_flops()


def updates(sizes: Sizes) -> Iterator[Subject]:
    """Yield updates at the paper's shapes, also in bfloat16 if it is fast, and at laptop shapes."""
    shapes = [(sizes.paper, 1, 0.8), (sizes.laptop, 1, 0.3), (sizes.laptop, sizes.members, 0.52)]
    for size, members, share in shapes:
        setting = f"batch and hidden {size}, {members} member" + "s" * (members > 1)
        for name in ("behavioral", "td3", "cql", "crr"):
            update = update_of(configs_of(name, size, members, "float32"))
            flops = flops_of(update)
            called = "update of " + ("APT+BE" if name == "behavioral" else name.upper())
            theirs = d3rlpy_update(name, size)
            compared = {"peer": theirs and ("d3rlpy", theirs), "peer_times": members}
            limit, target = arithmetic(flops), ("of limit", share)
            yield Subject(called, f"{setting}, float32", update, limit, target, **compared)
            if (size, members) == (sizes.paper, 1) and fastest_precision() == "bfloat16":
                rounded = update_of(configs_of(name, size, members, "bfloat16"))
                limit, target = arithmetic(flops, "bfloat16"), ("over peer", 1.5)
                ref = ("ours, float32", update)
                yield Subject(called, f"{setting}, bfloat16", rounded, limit, target, ref)


def d3rlpy_update(name: str, size: int) -> Call | None:
    """Return the same update by d3rlpy, with two hidden layers of that size."""
    if name == "behavioral" or (d3rlpy := peer("d3rlpy")) is None:
        return None
    encoder = d3rlpy.models.VectorEncoderFactory([size, size])
    shared = {"actor_encoder_factory": encoder, "critic_encoder_factory": encoder}
    config = {
        "td3": partial(d3rlpy.algos.TD3Config, update_actor_interval=1),
        "cql": partial(d3rlpy.algos.CQLConfig, n_action_samples=3),
        "crr": partial(d3rlpy.algos.CRRConfig, n_critics=2, n_action_samples=10),
    }[name](batch_size=size, **shared)
    made = config.create(device="cpu:0")
    made.create_impl((OBS,), ACTION)
    obs, action, one = torch.randn(size, OBS), torch.rand(size, ACTION) * 2 - 1, torch.ones(size, 1)
    parts = (obs, action, one, obs + 0.1, action, one, 0 * one, one)
    batch = d3rlpy.torch_utility.TorchMiniBatch(*parts, device="cpu:0")
    return lambda: made.impl.update(batch, 0)


def simulation(sizes: Sizes) -> Iterator[Subject]:
    """Yield a step of the environment, beside dm_control's and MuJoCo's."""
    ours, theirs, raw = (Environment("walker_walk", 0), *(suite.load("walker", "walk"),) * 2)
    actions = np.random.default_rng(0).uniform(-1, 1, (sizes.steps, ours.action_dim))
    model, data, substeps = raw.physics.model.ptr, raw.physics.data.ptr, raw._n_sub_steps

    def play(env: object) -> None:
        env.reset()
        for action in actions:
            env.step(action)

    def step_alone() -> None:
        for action in actions:
            data.ctrl[:] = action
            mujoco.mj_step(model, data, substeps)

    setting = f"Walker, {sizes.steps} random actions"
    limit, ref = Limit("mj_step", step_alone, 1), ("dm_control", partial(play, theirs))
    yield Subject("steps of the environment", setting, partial(play, ours), limit, peer=ref)


def searches(sizes: Sizes) -> Iterator[Subject]:
    """Yield neighbours, estimates and balls."""
    batch, n = sizes.paper, sizes.n
    neighbors, random = peer("sklearn.neighbors"), np.random.default_rng(0)
    phi = torch.randn(1, batch, 512)

    def brute(x: np.ndarray) -> Call:
        return lambda: (
            neighbors.NearestNeighbors(n_neighbors=5, algorithm="brute").fit(x).kneighbors()
        )

    limit = arithmetic(2 * batch**2 * 512)
    ref = neighbors and ("scikit-learn", brute(phi[0].numpy()))
    setting = f"n = {batch}, d = {512}, k = 5, float32"
    yield Subject(
        "neighbours in a batch", setting, lambda: knn_distances(phi, k=5), limit, peer=ref
    )
    x = random.normal(size=(n, 24))
    limit, ref = arithmetic(2 * n**2 * 24), neighbors and ("scikit-learn", brute(x))
    setting = f"n = {n}, d = 24, k = 5"
    yield Subject("neighbours in a sample", setting, lambda: knn_distances(x, k=5), limit, peer=ref)
    infomeasure = peer("infomeasure")
    options = {"approach": "kl", "k": 5, "noise_level": 0, "minkowski_p": 2, "base": "e"}
    ref = infomeasure and ("infomeasure", lambda: infomeasure.entropy(x, **options))
    ours = partial(shannon_entropy_knn, x, k=5)
    yield Subject("Shannon entropy", setting, ours, limit, peer=ref)
    many, miniball = points("normal", 10 * n, 24), peer("miniball")
    ref = miniball and ("MiniballCpp", lambda: miniball.Miniball(many))
    setting = f"n = {10 * n}, d = 24, normal"
    yield Subject("smallest ball", setting, partial(smallest_ball, many), peer=ref)
