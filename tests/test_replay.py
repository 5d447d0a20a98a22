import numpy as np
import pytest
import torch

from belib.replay import Replay
from belib.streams import Streams


def counting_episode(first, length):
    """Row i of an episode holds the number first + i everywhere; row 0's reward is poison."""
    rows = np.arange(first, first + length + 1, dtype=np.float32)[:, None]
    reward = rows.copy()
    reward[0] = 1e6
    return {"observation": rows, "action": rows, "reward": reward, "discount": np.ones_like(rows)}


def replay(n_step=1, capacity=100, **options):
    return Replay(1, capacity, 1, 1, n_step=n_step, discount=0.99, **options)


def test_alignment_of_action_reward_and_next_observation():
    memory = replay()
    memory.add_episode(0, counting_episode(0, 10))
    obs, action, reward, discount, next_obs, _ = memory.sample(500, Streams([0], "replay"))
    assert torch.equal(action, obs + 1)
    assert torch.equal(reward, (obs + 1)[..., 0])
    assert torch.equal(next_obs, obs + 1)
    assert sorted(obs.unique().tolist()) == list(range(10))
    assert (discount == np.float32(0.99)).all()


def test_three_steps_by_hand():
    memory = replay(n_step=3)
    memory.add_episode(0, counting_episode(0, 3))
    obs, _, reward, discount, next_obs, _ = memory.sample(4, Streams([0], "replay"))
    assert (obs == 0).all()
    assert (next_obs == 3).all()
    torch.testing.assert_close(reward, torch.full_like(reward, 1 + 0.99 * 2 + 0.99**2 * 3))
    torch.testing.assert_close(discount, torch.full_like(discount, 0.970299))


def test_a_terminal_ends_the_return():
    episode = counting_episode(0, 3)
    episode["discount"][2] = 0.0
    memory = replay(n_step=3)
    memory.add_episode(0, episode)
    batch = memory.sample(4, Streams([0], "replay"))
    torch.testing.assert_close(batch.reward, torch.full_like(batch.reward, 1 + 0.99 * 2))
    assert (batch.discount == 0).all()


def test_transitions_never_cross_an_episodes_end():
    memory = replay(n_step=3)
    for first in (0, 1000, 2000):
        memory.add_episode(0, counting_episode(first, 5))
    batch = memory.sample(2000, Streams([0], "replay"))
    assert (batch.next_obs - batch.obs == 3).all()
    assert batch.reward.max() < 1e5
    starts = {first + i for first in (0, 1000, 2000) for i in range(3)}
    assert set(batch.obs.flatten().int().tolist()) == starts


def test_uniform_over_valid_starts():
    memory = replay()
    memory.add_episode(0, counting_episode(0, 2))
    memory.add_episode(0, counting_episode(10, 8))
    drawn = memory.sample(20_000, Streams([0], "replay")).obs.flatten()
    _, counts = drawn.unique(return_counts=True)
    assert len(counts) == 10
    assert (counts - 2000).abs().max() < 5 * np.sqrt(20_000 * 0.1 * 0.9)


def test_a_full_memory_keeps_the_latest_rows():
    memory = replay(n_step=3, capacity=1000)
    for first in range(0, 2500, 50):
        memory.add_episode(0, counting_episode(first, 49))
    batch = memory.sample(10_000, Streams([0], "replay"))
    assert (batch.next_obs - batch.obs == 3).all()
    assert (batch.obs // 50 == batch.next_obs // 50).all()
    assert batch.obs.min() >= 1500
    assert memory.count[0] == 20 * 47


def test_row_by_row_equals_whole_episodes():
    whole, by_row = replay(n_step=2, capacity=17), replay(n_step=2, capacity=17)
    for first in (0, 100, 200, 300):
        episode = counting_episode(first, 6)
        whole.add_episode(0, episode)
        for row in range(7):
            by_row.add(0, *(column[row] for column in episode.values()), first=row == 0)
    one, other = (m.sample(64, Streams([5], "replay")) for m in (whole, by_row))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_members_share_a_source_with_their_own_rewards_and_draws():
    memory = replay(rewards=2, members=[(0, 0), (0, 1), (0, 1)])
    episode = counting_episode(0, 10)
    episode["reward"] = np.concatenate([episode["reward"], -episode["reward"]], -1)
    memory.add_episode(0, episode)
    batch = memory.sample(8, Streams([0, 1, 1], "replay"))
    assert (batch.reward[0] > 0).all()
    assert (batch.reward[1] < 0).all()
    assert torch.equal(batch.obs[1], batch.obs[2])
    assert not torch.equal(batch.obs[0], batch.obs[1])


def test_nothing_to_sample():
    with pytest.raises(ValueError, match="no episode has 3 steps yet"):
        replay(n_step=3).sample(4, Streams([0], "replay"))
