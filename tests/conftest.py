import itertools
import shutil
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from belib import cost, datasets, machine, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.envs import Environment, TaskRewards, primal_task
from belib.training import pretrain


@pytest.fixture(autouse=True)
def the_same_everywhere(request):
    """No test depends on threads, earlier draws, open figures or, unless marked `gpu`, a GPU."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    on_gpu = request.node.get_closest_marker("gpu")
    if on_gpu and not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    with pytest.MonkeyPatch.context() as patch:
        if not on_gpu:
            patch.setattr(torch.cuda, "is_available", lambda: False)
            patch.setattr(torch.cuda, "device_count", lambda: 0)
            patch.setenv("CUDA_VISIBLE_DEVICES", "")  # of processes that a test starts
        yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


class OtherSums(TorchDispatchMode):
    """A processor on which torch's setting `medium` sums float32 products in another order.

    Which one depends on how many matrices there are, as on AMD's with AVX-512. On many others both
    settings give the same bits, and a member has the same alone and beside others.
    """

    PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, medium = kwargs or {}, torch.get_float32_matmul_precision() == "medium"
        product = medium and function.overloadpacket.__name__ in self.PRODUCTS
        if not product or args[-1].dtype != torch.float32:
            return function(*args, **kwargs)
        *added, one, two = args
        cut = 1 + len(one) % one.shape[-1]
        begun = function(*added, one[..., :cut], two[..., :cut, :], **kwargs)
        rest = torch.matmul(one[..., cut:], two[..., cut:, :])
        return begun.add_(rest, alpha=kwargs.get("alpha", 1))


@pytest.fixture(params=["highest", "medium"])
def float32_products(request, monkeypatch):
    """Both answers of `machine.fastest_float32`, on a processor where they differ in bits."""
    monkeypatch.setattr(machine, "fastest_float32", lambda: request.param)
    with OtherSums():
        yield


@pytest.fixture
def end_after(monkeypatch):
    """Lets all episodes end after so many steps."""
    step = Environment.step

    def patch(steps, discount=1.0):
        def end(env, action):
            result = step(env, action)
            last = env._env._step_count == steps
            return result._replace(last=last, discount=discount) if last else result

        monkeypatch.setattr(Environment, "step", end)

    return patch


SMALL = {"scale": "test", "hidden_dim": 16, "batch_size": 16}


@pytest.fixture
def small_pretrain(end_after):
    """Collects two episodes of 100 steps, one of them random; keywords replace fields."""
    end_after(100)
    sizes = {"representation_dim": 8, "k": 3, "num_steps": 200, "random_steps": 100}
    return partial(PretrainConfig, **SMALL, **sizes, update_every=5)


@pytest.fixture
def small_offline(end_after):
    """Learns for 30 updates, with evaluations of 100 steps; keywords replace fields."""
    end_after(100)
    return partial(OfflineConfig, **SMALL, num_steps=30, eval_every=20, eval_episodes=1)


def collect_by_hand(folder, lengths, seed):
    """A tiny dataset of random actions, with its configuration and card."""
    domain = folder.parent.name
    env, rewards = Environment(primal_task(domain), seed), TaskRewards(domain)
    random = np.random.RandomState(seed)
    for index, length in enumerate(lengths):
        steps, labels = [(np.zeros(env.action_dim), env.reset())], [np.zeros(len(rewards.tasks))]
        for action in random.uniform(-1, 1, (length, env.action_dim)):
            steps.append((action, env.step(action)))
            labels.append(rewards(env.physics))
        columns = [(s.obs, a, [s.reward], [s.discount], s.physics) for a, s in steps]
        arrays = zip(datasets.DTYPES.items(), zip(*columns, strict=True), strict=True)
        episode = {key: np.array(column, dtype) for (key, dtype), column in arrays}
        labels = dict(zip(rewards.tasks, np.transpose(labels), strict=True))
        datasets.write_episode(folder, index, episode, labels)
    sizes = {"domain": domain, "objective": "random", "num_steps": sum(lengths), "seed": seed}
    (folder / "config.yaml").write_text(PretrainConfig(**sizes, scale="test").to_yaml())
    datasets.write_card(folder)


@pytest.fixture
def make_dataset(tmp_path, tmp_path_factory):
    """Builds `datasets/<domain>/<name>` with three short episodes, for one test alone."""

    def make(name="random-s0", lengths=(4, 6, 4), domain="walker", seed=0):
        kept = tmp_path_factory.getbasetemp() / "by_hand" / str((lengths, seed)) / domain / name
        if not kept.exists():
            collect_by_hand(kept, lengths, seed)
        return datasets.load(shutil.copytree(kept, tmp_path / "datasets" / domain / name))

    return make


@pytest.fixture
def frequent_checkpoints(monkeypatch):
    """The clock goes on by a second when it is looked at, and checkpoints may take all the time."""
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    monkeypatch.setattr(runs, "CHECKPOINT_SHARE", 10.0)


@pytest.fixture
def an_hour(monkeypatch):
    """Every job is estimated to take an hour and 2 GB."""
    monkeypatch.setattr(cost, "estimate", lambda *_, **__: cost.Cost(60.0, 2.0))


@pytest.fixture(scope="session")
def walker_data(tmp_path_factory):
    """Two random episodes of Walker, for all tests."""
    runs_dir = tmp_path_factory.mktemp("runs")
    config = PretrainConfig(objective="random", num_steps=2000, scale="test")
    pretrain(config, runs_dir=runs_dir, progress=False)
    return runs_dir / "datasets"


@pytest.fixture
def runs_dir(walker_data, tmp_path):
    """A folder of runs with `walker_data`."""
    (tmp_path / "datasets").symlink_to(walker_data)
    return tmp_path
