"""Monte-Carlo studies of the estimators: densities with known entropies, bias, variance, slopes."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from belib.estimators import behavioral_entropy_knn
from belib.tables import checked, once
from belib.weighting import prelec_beta

N_OUTCOMES = 512  # on which beta is conditioned, as in the paper's experiments

Sampler = Callable[[int, np.random.Generator], NDArray[np.float64]]


def truncated_normal(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """n samples (n, 1) of the standard normal restricted to [-3, 3]."""
    return stats.truncnorm.rvs(-3, 3, size=(n, 1), random_state=random)


def beta_square(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """n samples (n, 2) of two independent Beta(2, 2) on [0, 4]."""
    return 4 * random.beta(2, 2, size=(n, 2))


def study(
    sampler: Sampler,
    truths: dict[float, float],
    *,
    sizes: Sequence[int],
    seeds: int,
    estimators: dict[str, tuple[Callable[[int], int], str | None]],
) -> pd.DataFrame:
    """Estimates of behavioral entropies of one density, beta conditioned on `N_OUTCOMES`.

    Args:
        sampler: draws n samples.
        truths: the entropy (nats) of each alpha.
        sizes: sample sizes.
        seeds: repetitions; repetition s of size n is the same sample for all estimators.
        estimators: for each name, k as a function of n, and the correction.

    Returns a tidy table: alpha, estimator, n, seed, value, truth, error.
    """
    rows = []
    for n in sizes:
        for seed in range(seeds):
            samples = sampler(n, np.random.default_rng([seed, n]))
            for name, (neighbours, correction) in estimators.items():
                for alpha, truth in truths.items():
                    options = {"k": neighbours(n), "correction": correction}
                    beta = prelec_beta(alpha, N_OUTCOMES)
                    value = float(
                        behavioral_entropy_knn(samples, alpha=alpha, beta=beta, **options)
                    )
                    rows.append((alpha, name, n, seed, value, truth, value - truth))
    columns = ["alpha", "estimator", "n", "seed", "value", "truth", "error"]
    return pd.DataFrame(rows, columns=columns)


def bias_and_variance(table: pd.DataFrame) -> pd.DataFrame:
    """A row an alpha, estimator and n: |bias|, its standard error, and n times the variance."""
    table = checked(table, numbers=["alpha", "error"], names=["estimator"], integers=["n"])
    keys = ["alpha", "estimator", "n"]
    if "seed" in table:  # a repetition counts once, however often a user joined its table
        table = once(table, [*keys, "seed"], ["error"])
    groups = table.groupby(keys, sort=False)["error"]
    found = groups.agg(bias="mean", variance="var", repetitions="count").reset_index()
    found["bias_error"] = np.sqrt(found["variance"] / found["repetitions"])
    return found.assign(absolute_bias=found["bias"].abs(), n_var=found["n"] * found["variance"])


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Slopes of log |bias| and log variance over log n by least squares, with standard errors.

    Args:
        table: of `bias_and_variance`. A bias within 2 standard errors of 0 has no logarithm worth
            fitting: the slope is then NaN.
    """
    columns, rows = ["alpha", "absolute_bias", "bias_error", "variance"], []
    table = checked(table, numbers=columns, names=["estimator"], integers=["n"])
    for (alpha, estimator), part in table.groupby(["alpha", "estimator"], sort=False):
        row = {"alpha": alpha, "estimator": estimator}
        seen = (part["absolute_bias"] > 2 * part["bias_error"]).all()
        for name, column in (("bias", "absolute_bias"), ("variance", "variance")):
            row[f"{name} slope"] = row[f"{name} s.e."] = math.nan
            if seen or name == "variance":
                fit = stats.linregress(np.log(part["n"]), np.log(part[column]))
                row[f"{name} slope"], row[f"{name} s.e."] = fit.slope, fit.stderr
        rows.append(row)
    return pd.DataFrame(rows)
