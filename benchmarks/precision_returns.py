"""Does learning in bfloat16 products end where float32 does? Five seeds on one dataset.

`python benchmarks/precision_returns.py` collects a quickstart-sized dataset if RUNS_DIR has none,
learns with both precisions, and writes results/precision_returns.csv: means over seeds, their
difference, and the difference's bootstrap interval, which holds 0 where nothing is to be seen.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import provenance, write_table

from belib import results
from belib.config import OfflineConfig, PretrainConfig
from belib.training import pretrain, train_offline

PRECISIONS = ("float32", "bfloat16")


def difference(one: np.ndarray, two: np.ndarray) -> tuple[float, float]:
    """A 95 % interval of the difference of two means, seeds drawn again in each."""
    generator = np.random.default_rng(0)
    drawn = [generator.choice(each, (10_000, len(each))).mean(1) for each in (one, two)]
    low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs-dir", default="runs/precision")
    parser.add_argument("--algorithms", nargs="+", default=["td3", "cql"])
    parser.add_argument("--task", default="walker_stand")
    parser.add_argument("--scale", default="quickstart")
    parser.add_argument("--num-steps", type=int, help="updates; the scale's by default")
    options = parser.parse_args()
    head = provenance("torch")
    collected = PretrainConfig.at_scale(options.scale)
    rows, shared = [], {"task": options.task, "dataset": collected.dataset}
    for algorithm in options.algorithms:
        found = {}
        for precision in PRECISIONS:
            named = {**shared, "algorithm": algorithm, "precision": precision}
            named["num_steps"] = options.num_steps
            runs_dir = Path(options.runs_dir) / precision  # of which a path says nothing else
            pretrain(collected, runs_dir=runs_dir)
            configs = [OfflineConfig.at_scale(options.scale, seed=s, **named) for s in range(5)]
            table = train_offline(configs, runs_dir=runs_dir)
            found[precision] = results.final(table)["return"].to_numpy()
        low, high = difference(*found.values())
        row = {"algorithm": algorithm, **shared, "scale": options.scale, "seeds": 5}
        row |= {"updates": configs[0].num_steps}
        row |= {
            f"{name} {what}": value
            for name, each in found.items()
            for what, value in (("mean", each.mean()), ("sd", each.std(ddof=1)))
        }
        rows.append({**row, "difference low": low, "difference high": high})
    table = pd.DataFrame(rows).round(1)
    print(table.T.to_string())
    write_table("precision_returns", table, head)
