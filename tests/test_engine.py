"""All learners in the engine, and on a CPU what a GPU would do: kernel by kernel, no host."""

import copy

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from belib import engine, knn
from belib.config import OfflineConfig, PretrainConfig
from belib.cost import practice
from belib.offline import LEARNERS
from belib.replay import Batch
from belib.streams import Streams

CASES = [*LEARNERS, "cql standard", "behavioral", "rnd", "smm", "task"]
CASES += [f"{objective} corrected" for objective in ("behavioral", "rnd", "smm")]


def engine_of(case, device="cpu", seeds=(0, 1), **changes):
    """Return an engine of an algorithm or objective, perhaps in the other convention."""
    name, _, convention = case.partition(" ")
    fields = {"hidden_dim": 16, "batch_size": 32, "learning_rate": 1e-3, **changes}
    fields |= {"convention": convention} if convention else {}
    if name in LEARNERS:
        configs = [OfflineConfig(algorithm=name, seed=seed, **fields) for seed in seeds]
    else:
        fields |= {"task": "walker_walk"} if name == "task" else {}
        fields |= {"objective": name, "representation_dim": 8, "k": 4}
        configs = [PretrainConfig(seed=seed, **fields) for seed in seeds]
    return practice(configs, 100, torch.device(device))


def assert_equal(one, two):
    for key, value in one.items():
        assert torch.equal(two[key], value), key


def tensors(module):
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def tensors_in(tree):
    return [x for x in tree_leaves(tree) if isinstance(x, Tensor)]


class Recording(TorchDispatchMode):
    """A step's kernels with their memory, to be run again without Python, as a CUDA graph is.

    Every kernel writes where it wrote first, at the precision set then. What no graph can hold is
    refused.
    """

    REFUSED = ("local_scalar_dense", "nonzero", "normal", "uniform", "random", "is_nonzero")

    def __init__(self):
        super().__init__()
        self.kernels = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, function.overloadpacket.__name__
        if name.strip("_") in self.REFUSED:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        result = function(*args, **kwargs)
        memory = {x.untyped_storage().data_ptr() for x in tensors_in((args, kwargs))}
        fresh = [x.untyped_storage().data_ptr() not in memory for x in tensors_in(result)]
        if function._schema.is_mutable or any(fresh):
            outputs = [x for x, new in zip(tensors_in(result), fresh, strict=True) if new]
            setting = torch.get_float32_matmul_precision()
            self.kernels.append((setting, function, args, kwargs, fresh, outputs))
        return result

    @torch.no_grad()
    def replay(self):
        before = torch.get_float32_matmul_precision()
        for setting, function, args, kwargs, fresh, outputs in self.kernels:
            torch.set_float32_matmul_precision(setting)
            results = tensors_in(function(*args, **kwargs))
            results = [x for x, new in zip(results, fresh, strict=True) if new]
            for output, result in zip(outputs, results, strict=True):
                output.copy_(result)
        torch.set_float32_matmul_precision(before)


@pytest.fixture
def recorded(monkeypatch):
    """Capture steps in recordings, without changing anything meanwhile, as if on a GPU."""

    def record(step, device):
        work = step.__self__
        learner, state = copy.deepcopy([work.learner.state_dict(), work.state_dict()])
        with Recording() as recording:
            step()
        work.learner.load_state_dict(learner)
        work._latest.copy_(state["metrics"]["latest"])
        work._sums.copy_(state["metrics"]["sums"])
        return recording.replay

    monkeypatch.setattr(engine, "capture", record)
    for name in ("_on_gpu", "_captured"):
        monkeypatch.setattr(knn, name, lambda x: True)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_captured_steps_are_plain_updates(case, precision):
    """All that changes from step to step is in memory that stays, nothing in Python's objects."""
    plain, work, sums = *(engine_of(case, precision=precision) for _ in range(2)), {}
    for _ in range(6):
        metrics = plain.learner.update(plain.replay.transitions(plain.replay.draw(32, plain.draws)))
        sums = {key: sums.get(key, 0) + value for key, value in metrics.items()}
        work.step()
    assert_equal(tensors(plain.learner), tensors(work.learner))
    assert_equal(metrics, work.latest())
    for member in range(2):
        means = {key: float(value[member]) / 6 for key, value in sums.items()}
        assert work.take_means(member) == pytest.approx(means)
        assert work.take_means(member) == {}


@pytest.mark.parametrize("case", CASES)
def test_a_restored_engine_continues_to_the_bit(case):
    """States hold networks, moments, running statistics, streams and metrics."""
    work, other = engine_of(case), engine_of(case, seeds=(5, 6))
    work.step()
    learner, state = copy.deepcopy([work.learner.state_dict(), work.state_dict()])
    other.learner.load_state_dict(learner)
    other.load_state_dict(state)
    work.step()
    other.step()
    assert_equal(tensors(work.learner), tensors(other.learner))
    assert_equal(work.latest(), other.latest())
    assert work.take_means(1) == other.take_means(1)


@pytest.mark.usefixtures("float32_products")
@pytest.mark.parametrize("case", CASES)
def test_a_member_learns_the_same_alone_and_beside_others(case):
    together, alone = engine_of(case, seeds=(0, 1, 2)), engine_of(case, seeds=(1,)).learner
    for _ in range(8):
        batch = together.replay.transitions(together.replay.draw(32, together.draws))
        metrics = together.learner.update(batch)
        expected = alone.update(Batch(*(part[1:2] for part in batch)))
    within = {"rtol": 1e-2, "atol": 1e-3}
    for key, value in expected.items():
        torch.testing.assert_close(metrics[key][1:2], value, **within)
    parameters = dict(together.learner.named_parameters())
    for name, value in alone.named_parameters():
        member = parameters[name].unflatten(0, (-1, 3))[:, 1]
        torch.testing.assert_close(member, value, **within)


def test_taped_numbers_are_those_that_streams_would_have_drawn():
    plain, taped = Streams((0, 1), "test"), Streams((0, 1), "test")
    for _ in range(3):
        taped.draw_ahead()
        with taped.taped():
            assert torch.equal(taped.normal(4, 3), plain.normal(4, 3))
            assert torch.equal(taped.uniform(20), plain.uniform(20))
        assert torch.equal(taped.normal(2), plain.normal(2))  # between steps, as acting does
    with pytest.raises(RuntimeError, match="the same shapes each time"), taped.taped():
        taped.normal(5, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_on_a_gpu_the_graph_is_the_step(case, precision, monkeypatch):
    captured, eager = (engine_of(case, "cuda", precision=precision) for _ in range(2))
    for _ in range(8):
        captured.step()
    monkeypatch.setattr(engine, "capture", lambda step, device: step)
    for _ in range(8):
        eager.step()
    assert_equal(tensors(eager.learner), tensors(captured.learner))
    assert_equal(eager.latest(), captured.latest())


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_learns_what_a_cpu_learns_and_a_cpu_continues(case, monkeypatch, tmp_path):
    def from_the_cpu(self, numbers, distribution, fill=Streams._fill):
        drawn = torch.empty(numbers.shape)
        fill(self, drawn, distribution)
        numbers.copy_(drawn)

    monkeypatch.setattr(Streams, "_fill", from_the_cpu)
    on_gpu, on_cpu = engine_of(case, "cuda"), engine_of(case)
    for _ in range(8):
        on_gpu.step()
        on_cpu.step()
    for key, value in on_cpu.latest().items():
        torch.testing.assert_close(on_gpu.latest()[key], value, rtol=1e-3, atol=1e-4, msg=key)
    torch.save([on_gpu.learner.state_dict(), on_gpu.state_dict()], tmp_path / "state.pt")
    learner, state = torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True)
    on_cpu.learner.load_state_dict(learner)
    on_cpu.load_state_dict(state)
    on_gpus = {key: value.cpu() for key, value in tensors(on_gpu.learner).items()}
    assert_equal(on_gpus, tensors(on_cpu.learner))
    on_cpu.step()
