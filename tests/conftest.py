import pytest
import torch

from belib.config import OfflineConfig, PretrainConfig

SMALL = {"scale": "test", "hidden_dim": 16, "batch_size": 16}


@pytest.fixture(autouse=True)
def one_thread():
    """Small products gain nothing from threads, and bits depend on their number."""
    torch.set_num_threads(1)


@pytest.fixture
def small_pretrain():
    """A collection of seconds: two episodes, one of them random; keywords replace fields."""

    def make(**changes):
        sizes = {"representation_dim": 8, "k": 3, "num_steps": 2000, "random_steps": 1000}
        return PretrainConfig(**{**SMALL, **sizes, "update_every": 10, **changes})

    return make


@pytest.fixture
def small_offline():
    """An offline run of seconds; keywords replace fields."""

    def make(**changes):
        sizes = {"num_steps": 30, "eval_every": 20, "eval_episodes": 1}
        return OfflineConfig(**{**SMALL, **sizes, **changes})

    return make
