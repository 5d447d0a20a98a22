"""What offline learning learns from, and when it is evaluated."""

import pytest
import torch

from belib.config import OfflineConfig
from belib.training.learning import Learning, oldest


@pytest.mark.parametrize(
    ("transitions", "lengths"),
    [(1, [4]), (4, [4]), (5, [4, 6]), (10, [4, 6]), (11, [4, 6, 5]), (10**9, [4, 6, 5])],
)
def test_the_oldest_episodes_that_hold_so_many_transitions(transitions, lengths, make_dataset):
    assert oldest(make_dataset(lengths=(4, 6, 5)), transitions).lengths == lengths


def learning(dataset, tmp_path, **changes):
    sizes = {"batch_size": 4, "hidden_dim": 8, "num_steps": 2, "eval_every": 1, "eval_episodes": 1}
    config = OfflineConfig(scale="test", dataset=dataset.name, **{**sizes, **changes})
    return Learning([config], [tmp_path / "policy"], dataset)


def test_no_batch_holds_a_transition_beyond_the_capacity(make_dataset, tmp_path):
    dataset = make_dataset(lengths=(4, 6, 5))
    work = learning(dataset, tmp_path, replay_capacity=9)
    assert work.engine.replay.count.tolist() == [10]
    first = next(dataset.episodes())["observation"]
    batch = work.engine.replay.sample(200, work.engine.draws)
    apart = (batch.obs[0, :, None] - torch.from_numpy(first[:-1])).abs().amax(-1)
    assert 0.2 < (apart.amin(1) == 0).float().mean() < 0.6  # 4 of 10 transitions


@pytest.mark.parametrize(("eval_first", "steps"), [(False, [1, 2]), (True, [0, 1, 2])])
def test_evaluation_before_the_first_update(eval_first, steps, make_dataset, tmp_path):
    work = learning(make_dataset(), tmp_path, eval_first=eval_first)
    work.advance()
    work.restore(work.state())
    work.advance()
    assert [row["step"] for row in work.returns[0]] == steps
    (tmp_path / "policy").mkdir()
    work.write_tables()
