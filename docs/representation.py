"""What APT's learnt representation keeps of distances between states: the table and the picture.

    python docs/representation.py    # writes results/representation.{csv,png}, in half an hour

It collects six Walker datasets in runs/representation: three agents with the learnt representation,
and three that explore, with distances among observations.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from belib import coverage, datasets, figures, runs
from belib.config import PretrainConfig
from belib.paths import ROOT
from belib.training import pretrain

RUNS, RESULTS = ROOT / "runs" / "representation", ROOT / "results"
STEPS = (2_000, 5_000, 10_000, 15_000, 30_000, 50_000)  # actions are random up to the first
CONFIG = {"scale": "gate", "objective": "shannon", "intrinsic_reward_scale": "rms"}
POSE, HEIGHT, PITCH = slice(15), 14, 1  # columns of Walker's observations; the torso's sine
SPEEDS = slice(15, None)
NAMES = {"trunk": "among representations", "observations": "among observations"}

Weights = dict[str, np.ndarray]


def measured() -> Iterator[pd.DataFrame]:
    """Collect, and yield tables of `coverage.agreement` for each step, seed and set of states."""
    observation = PretrainConfig.at_scale(**CONFIG, representation="observation")
    explored = pretrain(observation.expand({"seed": [1000, 1001, 1002]}), runs_dir=RUNS)
    for step in STEPS:
        learnt = PretrainConfig.at_scale(**CONFIG, num_steps=step)
        folders = pretrain(learnt.expand({"seed": [3000, 3001, 3002]}), runs_dir=RUNS)
        agent = (runs.checkpoint_in(folders[0]) or {})["learner"].items()
        for member, folder in enumerate(folders):
            weights = {k[10:]: v[member].numpy() for k, v in agent if k.startswith("icm.trunk.")}
            own, other = read(folder), read(explored[member])
            rows = np.random.default_rng(0).choice(len(other), len(own), replace=False)
            both = np.concatenate([own, other[rows]])
            for states, obs in (("own", own), ("own and exploring", both)):
                for table in compared(obs, weights, both=obs is both):
                    yield table.assign(states=states, step=step, seed=3000 + member)


def read(folder: Path) -> np.ndarray:
    """Return a dataset's observations (n, 24)."""
    return np.concatenate([e["observation"][1:] for e in datasets.load(folder).episodes()])


def compared(obs: np.ndarray, weights: Weights, *, both: bool) -> Iterator[pd.DataFrame]:
    """Yield what the trunk and its parts keep; if `both`, the latter half of states explores."""
    scaled, direction = obs / obs.std(0), obs / np.linalg.norm(obs, axis=1)[:, None]
    spaces = {"observations": scaled, "directions": direction}
    spaces |= {"pose": scaled[:, POSE], "velocities": scaled[:, SPEEDS]}
    facts = {"speed": np.linalg.norm(obs[:, SPEEDS], axis=1), "height": obs[:, HEIGHT]}
    facts |= {"exploring": np.arange(len(obs)) >= len(obs) / 2} if both else {}
    for name, x in forms(obs, scaled, weights).items():
        yield coverage.agreement(x, spaces, facts).assign(among=name)
        variance, axes = np.linalg.eigh(np.cov(x.T))
        lean = abs(spearmanr(x @ axes[:, -1], obs[:, PITCH]).statistic)
        values = {"of": ["variance", "lean"], "value": [variance[-1] / variance.sum(), lean]}
        yield pd.DataFrame(values).assign(measure="first component", among=name)


def forms(obs: np.ndarray, scaled: np.ndarray, weights: Weights) -> dict[str, np.ndarray]:
    """Return the trunk's output and that of its parts; of scaled ones for untrained weights."""
    h, g = (x @ weights["linear.weight"] + weights["linear.bias"] for x in (obs, scaled))
    norm = normed(h) * weights["scale"] + weights["shift"]
    parts = {"linear": h, "linear, LayerNorm": norm, "linear, tanh": np.tanh(h)}
    of_scaled = {"trunk, scaled": np.tanh(normed(g)), "linear, tanh, scaled": np.tanh(g)}
    untrained = (weights["scale"] == 1).all()
    return {
        "observations": scaled,
        **parts,
        "trunk": np.tanh(norm),
        **(of_scaled if untrained else {}),
    }


def normed(h: np.ndarray) -> np.ndarray:
    return (h - h.mean(1, keepdims=True)) / h.std(1, keepdims=True)


def main() -> None:
    """Write the table, means and ranges of three seeds, and the picture."""
    table = pd.concat(measured())
    others = table["of"].isin(["directions", "pose", "velocities"])
    table = table[~others | (table["measure"] == "distances")]
    keys = ["states", "among", "step", "measure", "of"]
    values = table.groupby(keys, sort=False)["value"].agg(["mean", "min", "max"])
    values.round(3).to_csv(RESULTS / "representation.csv")

    figures.use_style()
    drawn = table[table["among"].isin(NAMES) & (table["states"] == "own and exploring")]
    drawn = drawn[~drawn["of"].isin(["height", "variance", "lean"])].replace({"among": NAMES})
    itself = drawn["measure"].isin(["distances", "neighbours"]) | (drawn["of"] == "observations")
    drawn = drawn[~itself | (drawn["among"] == NAMES["trunk"])]
    drawn = drawn.sort_values("among", ascending=False, kind="stable")
    look = {"hue": "of", "style": "among", "units": "seed", "palette": "colorblind"}
    axes = figures.style.over_steps(drawn, "measure", markers=True, **look)
    axes[0].figure.savefig(RESULTS / "representation.png", dpi=70, bbox_inches="tight")


if __name__ == "__main__":
    main()
