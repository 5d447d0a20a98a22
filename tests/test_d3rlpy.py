"""Learners end where d3rlpy's end, if it is installed (`.[compare]`)."""

import numpy as np
import pytest
import torch
from test_offline import learner
from test_optimum import best, line_return, move, seen

from belib.replay import Batch

EPISODES, STEPS, SEEDS, UPDATES = 300, 20, (0, 1, 2), 1500
SIZES = {"hidden_dim": 64, "batch_size": 128, "learning_rate": 1e-3, "tau": 0.02, "discount": 0.9}


def walks():
    """Return obs, with a row more, action and reward of walks with a third of optimal actions."""
    g = torch.Generator().manual_seed(0)
    s, actions = [torch.rand(EPISODES, 1, generator=g) * 2 - 1], []
    for _ in range(STEPS):
        a, optimal = torch.rand(2, EPISODES, 1, generator=g)
        actions.append(torch.where(optimal < 1 / 3, best(s[-1]), a * 2 - 1))
        s.append(move(s[-1], actions[-1]))
    s = torch.stack(s, 1)
    return seen(s), torch.stack(actions, 1), 1 - s[:, 1:].abs()


def our_returns(algorithm, **changes):
    made = learner(algorithm, SEEDS, (2, 1), **SIZES, **changes)
    (obs, action, reward), shape = walks(), (len(SEEDS), SIZES["batch_size"])
    discount = torch.full(shape, SIZES["discount"])
    for _ in range(UPDATES):
        at, t = torch.randint(EPISODES, shape), torch.randint(STEPS, shape)
        rows = obs[at, t], action[at, t], reward[at, t, 0], discount, obs[at, t + 1]
        made.update(Batch(*rows, path=None))
    act = lambda s: made.act(seen(s).expand(len(SEEDS), -1, -1), explore=False)  # noqa: E731
    return line_return(act).numpy()


def their_returns(d3rlpy, config):
    obs, action, reward = (part.numpy() for part in walks())
    ends = np.zeros((EPISODES, STEPS))
    ends[:, -1] = 1
    flat = [x.reshape(EPISODES * STEPS, -1) for x in (obs[:, :-1], action, reward)]
    data = d3rlpy.dataset.MDPDataset(*flat, np.zeros(ends.size), timeouts=ends.ravel())
    options = {"n_steps": UPDATES, "n_steps_per_epoch": UPDATES, "show_progress": False}
    returns = []
    for seed in SEEDS:
        d3rlpy.seed(seed)
        made = config.create()
        made.fit(data, logger_adapter=d3rlpy.logging.NoopAdapterFactory(), **options)
        act = lambda s: torch.from_numpy(made.predict(seen(s)[0].numpy()))[None]  # noqa: B023, E731
        returns.append(line_return(act).item())
    return np.array(returns)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["td3_bc", "cql"])
def test_learners_end_where_those_of_d3rlpy_end(algorithm):
    d3rlpy = pytest.importorskip("d3rlpy", reason="pip install -e '.[compare]'")
    hidden = d3rlpy.models.VectorEncoderFactory([SIZES["hidden_dim"]] * 2)
    same = {f"{part}_learning_rate": SIZES["learning_rate"] for part in ("actor", "critic")}
    same |= {f"{part}_encoder_factory": hidden for part in ("actor", "critic")}
    same |= {"gamma": SIZES["discount"], "tau": SIZES["tau"], "batch_size": SIZES["batch_size"]}
    if algorithm == "td3_bc":
        options = {"td3_bc_weight": 2.5}
        same |= {"target_smoothing_sigma": 0.2, "target_smoothing_clip": 0.3}
        config = d3rlpy.algos.TD3PlusBCConfig(alpha=2.5, update_actor_interval=1, **same)
    else:
        options = {"convention": "standard", "cql_weight": 1.0, "num_action_samples": 10}
        same |= {"conservative_weight": 1.0, "initial_alpha": 1.0, "alpha_learning_rate": 0.0}
        same |= {"temp_learning_rate": SIZES["learning_rate"], "n_action_samples": 10}
        config = d3rlpy.algos.CQLConfig(soft_q_backup=False, **same)
    ours, theirs = our_returns(algorithm, **options), their_returns(d3rlpy, config)
    noise = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / len(SEEDS))
    assert abs(ours.mean() - theirs.mean()) < max(3 * noise, 0.25), "a twentieth of the way"
