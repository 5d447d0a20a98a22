import numpy as np
import pytest
import torch

from belib.replay import Replay
from belib.streams import Streams


def counting(first, length):
    """Columns of an episode: row i holds first + i everywhere, but row 0's reward is poison."""
    rows = np.arange(first, first + length + 1, dtype=np.float32)[:, None]
    reward = rows.copy()
    reward[0] = 1e6
    return rows, rows, reward, np.ones_like(rows)


def replay(*episodes, n_step=1, capacity=100, **options):
    memory = Replay(1, capacity, 1, 1, n_step=n_step, discount=0.99, **options)
    for episode in episodes:
        memory.add(0, *episode, first=True)
    return memory


def sample(memory, size, seeds=(0,)):
    return memory.transitions(memory.draw(size, Streams(seeds, "replay")))


def test_one_step_by_hand_and_starts_are_uniform():
    memory = replay(counting(0, 2), counting(10, 8))
    obs, action, reward, discount, next_obs, path = sample(memory, 20_000)
    assert torch.equal(action, obs + 1)
    assert torch.equal(reward, (obs + 1)[..., 0])
    assert torch.equal(next_obs, obs + 1)
    assert torch.equal(path, torch.stack([obs, next_obs], 2))
    assert (discount == np.float32(0.99)).all()
    starts, counts = obs.unique(return_counts=True)
    assert starts.tolist() == [0, 1, *range(10, 18)]
    assert (counts - 2000).abs().max() < 5 * np.sqrt(20_000 * 0.1 * 0.9)


@pytest.mark.parametrize(
    ("terminal", "paid", "discount"), [(3, 1 + 0.99 * 2 + 0.99**2 * 3, 0.99**3), (2, 2.98, 0.0)]
)
def test_three_steps_by_hand_and_a_terminal_ends_the_return(terminal, paid, discount):
    episode = counting(0, 3)
    if terminal < 3:
        episode[-1][terminal] = 0.0
    batch = sample(replay(episode, n_step=3), 4)
    assert batch.path[..., 0].tolist() == [[[0, 1, 2, 3]] * 4]
    torch.testing.assert_close(batch.reward, torch.full((1, 4), paid))
    torch.testing.assert_close(batch.discount, torch.full((1, 4), discount))


def test_a_full_memory_keeps_the_latest_rows_and_no_transition_crosses_an_episodes_end():
    episodes = [counting(first, 49) for first in range(0, 2500, 50)]
    memory = replay(*episodes, n_step=3, capacity=1000)
    batch = sample(memory, 10_000)
    assert (batch.next_obs - batch.obs == 3).all()
    assert (batch.obs // 50 == batch.next_obs // 50).all()
    assert batch.reward.max() < 1e5
    assert batch.obs.min() >= 1500
    assert memory.count[0] == 20 * 47


@pytest.mark.parametrize("length", [6, 32, 40])
def test_row_by_row_equals_whole_episodes(length):
    episodes = [counting(first, length) for first in (0, 100, 200, 300)]
    whole, by_row = replay(*episodes, n_step=2, capacity=17), replay(n_step=2, capacity=17)
    for episode in episodes:
        for row in range(length + 1):
            by_row.add(0, *(column[row] for column in episode), first=row == 0)
    pairs = zip(sample(whole, 64), sample(by_row, 64), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_members_share_a_source_and_have_rewards_and_draws_of_their_own():
    obs, action, reward, discount = counting(0, 10)
    episode = (obs, action, np.concatenate([reward, -reward], -1), discount)
    memory = replay(episode, rewards=2, members=[(0, 0), (0, 1), (0, 1)])
    batch = sample(memory, 8, seeds=(0, 1, 1))
    assert (batch.reward[0] > 0).all()
    assert (batch.reward[1] < 0).all()
    assert torch.equal(batch.obs[1], batch.obs[2])
    assert not torch.equal(batch.obs[0], batch.obs[1])


def test_nothing_to_sample():
    with pytest.raises(ValueError, match="a source has no episode of 3 steps"):
        sample(replay(counting(0, 2), n_step=3), 4)
