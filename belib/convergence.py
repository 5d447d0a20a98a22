"""Monte-Carlo studies of the estimators on densities with known entropies: bias and variance."""

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from belib.estimators import behavioral_entropy_knn
from belib.results.tables import checked, once
from belib.weighting import prelec_beta

N_OUTCOMES = 512  # of the paper's experiments


def truncated_normal(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return n samples (n, 1) of the standard normal restricted to [-3, 3]."""
    return stats.truncnorm.rvs(-3, 3, size=(n, 1), random_state=random)


def beta_square(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return n samples (n, 2) of two independent Beta(2, 2) on [0, 4]."""
    return 4 * random.beta(2, 2, size=(n, 2))


def study(
    sampler: Callable[[int, np.random.Generator], NDArray[np.float64]],
    truths: dict[float, float],
    *,
    sizes: Sequence[int],
    seeds: int,
    estimators: dict[str, tuple[Callable[[int], int], str | None]],
    n_outcomes: int | None = N_OUTCOMES,
) -> pd.DataFrame:
    """Return a density's estimated behavioral entropies by sample, estimator and alpha.

    Args:
        sampler: draws n samples.
        truths: the entropy (nats) of each alpha.
        sizes, seeds: sample sizes n, and samples of each n; all estimators get the same samples.
        estimators: by name, k as a function of n, and the correction.
        n_outcomes: M, for which beta is `prelec_beta(alpha, M)`; None means beta = 1.

    Columns: alpha, estimator, n, seed, value, truth, error.
    """
    rows = []
    for n, seed in product(sizes, range(seeds)):
        samples = sampler(n, np.random.default_rng([seed, n]))
        for (name, (neighbours, correction)), alpha in product(estimators.items(), truths):
            beta = 1.0 if n_outcomes is None else prelec_beta(alpha, n_outcomes)
            options = {"k": neighbours(n), "correction": correction}
            estimate = behavioral_entropy_knn(samples, alpha=alpha, beta=beta, **options)
            rows.append((alpha, name, n, seed, estimate.value, truths[alpha]))
    columns = ["alpha", "estimator", "n", "seed", "value", "truth"]
    return pd.DataFrame(rows, columns=columns).eval("error = value - truth")


def bias_and_variance(table: pd.DataFrame) -> pd.DataFrame:
    """Return |bias|, its standard error and n times the variance by alpha, estimator and n."""
    table = checked(table, numbers=["alpha", "error"], names=["estimator"], integers=["n", "seed"])
    keys = ["alpha", "estimator", "n"]
    groups = once(table, [*keys, "seed"], ["error"]).groupby(keys, sort=False)["error"]
    summary = groups.agg(bias="mean", variance="var", bias_error="sem").reset_index()
    return summary.eval("absolute_bias = abs(bias)").eval("n_var = n * variance")


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Return slopes of log |bias| and log variance over log n by least squares, and their errors.

    `table` is that of `bias_and_variance`. The slope of a bias is NaN if the bias of some n is
    within 2 standard errors of 0.
    """
    rows = []
    for (alpha, estimator), part in table.groupby(["alpha", "estimator"], sort=False):
        row = {"alpha": alpha, "estimator": estimator}
        significant = (part["absolute_bias"] > 2 * part["bias_error"]).all()
        for name, column in (("bias", "absolute_bias"), ("variance", "variance")):
            row[f"{name} slope"] = row[f"{name} s.e."] = math.nan
            if significant or name == "variance":
                fit = stats.linregress(np.log(part["n"]), np.log(part[column]))
                row[f"{name} slope"], row[f"{name} s.e."] = fit.slope, fit.stderr
        rows.append(row)
    return pd.DataFrame(rows)
