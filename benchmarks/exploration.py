"""Tables of a study's datasets, by how far they explore, and of policies learnt from them.

    python benchmarks/exploration.py runs/gate results/gate

adds what is finished to `exploration.csv`, one row per dataset, and `returns.csv`, one row per
policy. Measures are relative to `results/gate/reference.npz`: robust scales and centres of cells
(farthest-point traversal, Gonzalez 1985) of the gate's first 18 datasets, made at 38412ce.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.spatial import cKDTree

from belib import coverage, datasets, estimators, paths, results
from belib.knn import knn_distances
from belib.networks import Trunk
from belib.streams import Streams, derive_seed
from belib.training import is_finished

REFERENCE = paths.ROOT / "results" / "gate" / "reference.npz"
STATES = 3000  # of the later half of each dataset
POSE = 15  # Walker's orientations and height come first, then its velocities
HEIGHT = 14
POLICY = ["dataset", "task", "algorithm", "seed"]
ARM = ["objective", "parameter", "variant", "label", "intrinsic_reward_scale", "num_steps", "seed"]


def later_states(dataset: datasets.Dataset) -> np.ndarray:
    """Return states (STATES, d) drawn from the later half of a dataset, without replacement."""
    states = dataset.transitions().next_obs[dataset.steps // 2 :].astype(np.float64)
    random = np.random.default_rng(derive_seed(0, "exploration", dataset.name))
    return states[random.choice(len(states), STATES, replace=False)]


def explored(dataset: datasets.Dataset, reference: dict[str, np.ndarray]) -> dict[str, float]:
    """Return a dataset's measures in nats, shares, metres and the environment's units."""
    raw = later_states(dataset)
    scaled = (raw - reference["middle"]) / reference["spread"]
    row = {}
    for name, columns in (("all", slice(None)), ("pose", slice(POSE))):
        states = scaled[:, columns]
        row[f"entropy_{name}"] = estimators.shannon_entropy_knn(states, duplicates="drop").value
        apart = cKDTree(states).query(reference[f"{name}_centres"])[0]
        row[f"cells_{name}"] = float((apart <= reference[f"{name}_reach"]).mean())
    trunk = Trunk(Streams([0], "exploration"), raw.shape[1], 128)
    with torch.no_grad():
        seen = trunk(torch.from_numpy(raw).float()[None])
    row["trunk"] = float(torch.log1p(knn_distances(seen, k=12).mean(-1)).mean())
    row["ball"] = coverage.smallest_ball(raw).radius
    row["height"] = float(raw[:, HEIGHT].mean())
    rewards = (datasets.read_card(dataset.folder) or {})["mean_reward"]
    return row | {f"reward_{task}": value for task, value in rewards.items()}


def policies(runs_dir: Path) -> pd.DataFrame:
    """Return one row per policy: mean and sd of its later evaluations, and its final return."""
    if not any(runs_dir.glob("offline/**/results.csv")):
        return pd.DataFrame(columns=POLICY)
    table, rows = results.collect(runs_dir), []
    table = table[table.groupby(POLICY)["step"].transform("max") == table["step"].max()]
    for key, group in table.sort_values("step").groupby(POLICY):
        late = group.loc[results.is_late(group), "return"]
        row = {"late": late.mean(skipna=False), "late_sd": late.std(), "evaluations": len(late)}
        row |= {"final": group["return"].iloc[-1], "step": group["step"].max()}
        status = "diverged" if "diverged" in set(group["status"]) else "ok"
        rows.append(dict(zip(POLICY, key, strict=True)) | row | {"status": status})
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs_dir", type=Path)
    parser.add_argument("to", type=Path)
    given = parser.parse_args()
    runs_dir, to = given.runs_dir.absolute(), paths.make_folder(given.to.absolute())
    collected = datasets.find_datasets(runs_dir, "walker")
    finished = [dataset for dataset in collected if is_finished(dataset.config(), dataset.folder)]
    with np.load(REFERENCE, allow_pickle=False) as file:
        reference = dict(file)
    file, rows = to / "exploration.csv", []
    known = {*pd.read_csv(file)["dataset"]} if file.exists() else set()
    new = [dataset for dataset in finished if dataset.name not in known]
    for dataset, config in ((dataset, dataset.config()) for dataset in new):
        settings = {"dataset": dataset.name} | {name: getattr(config, name) for name in ARM}
        rows.append(settings | explored(dataset, reference))
    add(file, pd.DataFrame(rows), ["seed", "dataset"])
    add(to / "returns.csv", policies(runs_dir), POLICY)


def add(file: Path, rows: pd.DataFrame, keys: list[str]) -> None:
    """Add rows to a table, in the place of those with the same keys."""
    old = [pd.read_csv(file)] if file.exists() else []
    table = pd.concat([*old, rows]).drop_duplicates(keys, keep="last").sort_values(keys)
    paths.write_text(file, table.round(4).to_csv(index=False))
    print(f"{file}: {len(table)} rows")


if __name__ == "__main__":
    main()
