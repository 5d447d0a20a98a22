"""The engine on a CPU: what a GPU would do, replayed kernel by kernel, and checked for devices."""

import contextlib
import copy

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from belib import actor_critic, engine, knn, machine
from belib.agents.apt import APT
from belib.agents.ddpg import DDPG
from belib.agents.rnd import RND
from belib.agents.smm import SMM
from belib.config import OfflineConfig, PretrainConfig
from belib.engine import Engine
from belib.offline import LEARNERS
from belib.replay import Replay
from belib.streams import Streams, Tape

OBS, ACTION, SKILLS, SEEDS = 5, 2, 3, (0, 1)
CPU = torch.device("cpu")
COLLECTORS = {"behavioral": APT, "rnd": RND, "smm": SMM, "task": DDPG}
NAMES = [*LEARNERS, *COLLECTORS]


def make(name, **changes):
    """A learner of the algorithm or objective, a replay memory that it can learn from, draws."""
    sizes = {"hidden_dim": 16, "batch_size": 32, "learning_rate": 1e-3, **changes}
    obs_dim, n_step = OBS, 1
    if name in LEARNERS:
        configs = [OfflineConfig(algorithm=name, seed=seed, **sizes) for seed in SEEDS]
        learner = LEARNERS[name](OBS, ACTION, configs)
    else:
        sizes |= {"representation_dim": 8, "k": 4, "skill_dim": SKILLS, "objective": name}
        sizes |= {"task": "walker_walk"} if name == "task" else {}
        configs = [PretrainConfig(seed=seed, **sizes) for seed in SEEDS]
        obs_dim, n_step = OBS + SKILLS * (name == "smm"), 3
        learner = COLLECTORS[name](obs_dim, ACTION, configs)
    replay = Replay(len(SEEDS), 100, obs_dim, ACTION, n_step=n_step, discount=0.99)
    random = np.random.default_rng(0)
    for source in range(len(SEEDS)):
        sizes = {"observation": obs_dim, "action": ACTION, "reward": 1, "discount": 1}
        episode = {key: random.uniform(-1, 1, (60, n)) for key, n in sizes.items()}
        if name == "smm":
            episode["observation"][:, OBS:] = np.eye(SKILLS)[source]
        replay.add_episode(source, {**episode, "discount": np.ones((60, 1))})
    return learner, replay, Streams(SEEDS, "replay")


def engine_of(name, device=CPU, **changes):
    learner, replay, draws = make(name, **changes)
    return Engine(learner, replay, 32, draws, device)


def check_equal(one, two):
    for key, value in one.items():
        assert torch.equal(two[key], value), key


def tensors(module):
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("name", NAMES)
def test_steps_of_the_engine_are_plain_updates(name):
    learner, replay, draws = make(name)
    work, sums = engine_of(name), {}
    for _ in range(6):
        metrics = learner.update(replay.sample(32, draws))
        sums = {key: sums.get(key, 0) + value for key, value in metrics.items()}
        work.step()
    check_equal(tensors(learner), tensors(work.learner))
    check_equal(metrics, work.latest())
    for member in range(len(SEEDS)):
        means = work.take_means(member)
        assert means == pytest.approx({key: float(v[member]) / 6 for key, v in sums.items()})
        assert work.take_means(member) == {}


class Recording(TorchDispatchMode):
    """A step's kernels with their memory, to be run again without Python, as a CUDA graph is.

    Every kernel writes where it wrote first, and is the one that was chosen then, whatever torch is
    set to meanwhile. What no graph can hold is refused.
    """

    REFUSED = ("_local_scalar_dense", "nonzero", "normal", "uniform", "random", "is_nonzero")

    def __init__(self):
        super().__init__()
        self.kernels = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name.strip("_") in {each.strip("_") for each in self.REFUSED}:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        result = function(*args, **(kwargs or {}))
        inputs = {
            t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if is_tensor(t)
        }
        fresh = [
            t if is_tensor(t) and t.untyped_storage().data_ptr() not in inputs else None
            for t in tree_leaves(result)
        ]
        if function._schema.is_mutable or any(t is not None for t in fresh):
            setting = torch.get_float32_matmul_precision()
            self.kernels.append((setting, function, args, kwargs or {}, fresh))
        return result

    def replay(self):
        before = torch.get_float32_matmul_precision()
        for setting, function, args, kwargs, outputs in self.kernels:
            torch.set_float32_matmul_precision(setting)
            for kept, found in zip(outputs, tree_leaves(function(*args, **kwargs)), strict=True):
                if kept is not None:
                    kept.copy_(found)
        torch.set_float32_matmul_precision(before)


def is_tensor(x):
    return isinstance(x, torch.Tensor)


class Elsewhere(TorchDispatchMode):
    """Refuses tensors of the CPU, also the single numbers that torch itself lets pass."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        found = [x for x in tree_leaves((args, kwargs, result)) if is_tensor(x)]
        assert all(tensor.device.type != "cpu" for tensor in found), function
        return result


def record(step, device):
    """`engine.capture` with a recording for a graph: nothing is to change while it is taken."""
    work = step.__self__
    before = copy.deepcopy([work.learner.state_dict(), work.state()])
    with Recording() as recording:
        step()
    work.learner.load_state_dict(before[0])
    work._latest.copy_(before[1]["metrics"]["latest"])
    work._sums.copy_(before[1]["metrics"]["sums"])
    return lambda: replayed(recording)


@torch.no_grad()
def replayed(recording):
    recording.replay()


def as_captured_on_a_gpu(monkeypatch):
    for name in ("_on_gpu", "_captured"):
        monkeypatch.setattr(knn, name, lambda x: True)


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_a_captured_step_is_the_step(name, precision, monkeypatch):
    """All that changes from step to step is in memory that stays: nothing is in Python's hands."""
    as_captured_on_a_gpu(monkeypatch)
    eager, captured = (engine_of(name, precision=precision) for _ in range(2))
    for _ in range(6):
        eager.step()
    monkeypatch.setattr(engine, "capture", record)
    for _ in range(6):
        captured.step()
    check_equal(tensors(eager.learner), tensors(captured.learner))
    check_equal(eager.latest(), captured.latest())
    assert eager.take_means(1) == captured.take_means(1)


def test_a_step_that_waits_for_numbers_cannot_be_captured(monkeypatch):
    monkeypatch.setattr(engine, "capture", record)
    work = engine_of("behavioral")  # its search for neighbours on a CPU looks at them
    for _ in range(engine._WARM_UP):
        work.step()
    with pytest.raises(RuntimeError, match="not permitted"):
        work.step()


@pytest.mark.parametrize("convention", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_stays_on_its_device(name, convention, monkeypatch):
    """On torch's device without numbers: nothing is taken from the CPU, nothing waited for."""
    conventions = ("exorl", "standard") if name in LEARNERS else ("urlb", "corrected")
    as_captured_on_a_gpu(monkeypatch)
    for module in (machine, actor_critic):  # autocast does not know the device
        monkeypatch.setattr(module, "products", lambda *_: contextlib.nullcontext())
    learner, replay, draws = make(name, convention=conventions[convention])
    work = Engine(learner, replay, 32, draws, torch.device("meta"))
    with monkeypatch.context() as patch:
        patch.setattr(Streams, "fill", lambda self, numbers, distribution: numbers)
        with Elsewhere():
            for _ in range(2):
                work._update()
    kept = [work._sums, *learner.parameters(), *learner.buffers()]
    assert all(tensor.is_meta for tensor in kept)


def test_a_tape_repeats_what_streams_would_have_drawn():
    plain, taped = Streams(SEEDS, "test"), Streams(SEEDS, "test")
    tape, seen = Tape(taped), set()
    for _ in range(3):
        tape.draw()
        with tape:
            found = taped.normal(4, 3), taped.uniform(20)
        assert torch.equal(found[0], plain.normal(4, 3))
        assert torch.equal(found[1], plain.uniform(20))
        seen.add(found[0].data_ptr())
        assert torch.equal(taped.normal(2), plain.normal(2))  # between steps, as acting does
    assert len(seen) == 1
    tape.draw()
    with tape, pytest.raises(RuntimeError, match="the same shapes each time"):
        taped.normal(5, 3)


def from_the_cpu(self, numbers, distribution, fill=Streams.fill):
    """A GPU's noise, drawn as a CPU would."""
    return numbers.copy_(fill(self, torch.empty(numbers.shape), distribution))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_on_a_gpu_the_graph_is_the_step(name, precision, monkeypatch):
    gpu = torch.device("cuda")
    captured, eager = (engine_of(name, gpu, precision=precision) for _ in range(2))
    for _ in range(8):
        captured.step()
    monkeypatch.setattr(engine, "capture", lambda step, device: step)
    for _ in range(8):
        eager.step()
    check_equal(tensors(eager.learner), tensors(captured.learner))
    check_equal(eager.latest(), captured.latest())


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_learns_what_a_cpu_learns(name, monkeypatch):
    monkeypatch.setattr(Streams, "fill", from_the_cpu)
    on_gpu, on_cpu = (engine_of(name, torch.device(kind)) for kind in ("cuda", "cpu"))
    for _ in range(8):
        on_gpu.step()
        on_cpu.step()
    found, expected = on_gpu.latest(), on_cpu.latest()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-3, atol=1e-4, msg=key)


@pytest.mark.gpu
def test_a_gpus_state_continues_on_a_cpu(tmp_path):
    on_gpu, on_cpu = (engine_of("td3", torch.device(kind)) for kind in ("cuda", "cpu"))
    for _ in range(5):
        on_gpu.step()
    torch.save([on_gpu.learner.state_dict(), on_gpu.state()], tmp_path / "state.pt")
    learner, state = torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True)
    on_cpu.learner.load_state_dict(learner)
    on_cpu.restore(state)
    kept = {key: value.cpu() for key, value in tensors(on_gpu.learner).items()}
    check_equal(kept, tensors(on_cpu.learner))
    on_cpu.step()
