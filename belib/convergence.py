"""Monte-Carlo studies of the estimators on densities with known entropies: bias and variance."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from belib.estimators import behavioral_entropy_knn
from belib.results.tables import checked, once


def study(
    sampler: Callable[[int, np.random.Generator], NDArray[np.float64]],
    truths: dict[float, float],
    *,
    sizes: Sequence[int],
    seeds: int,
    estimators: dict[str, tuple[Callable[[int], int], str | None]],
    betas: dict[float, float] | None = None,
) -> pd.DataFrame:
    """Return a density's estimated behavioral entropies by sample, estimator and alpha.

    Args:
        sampler: draws n samples, (n, d).
        truths: the entropy (nats) of each alpha.
        sizes, seeds: sample sizes n, and samples of each n; all estimators get the same samples.
        estimators: by name, k as a function of n, and the correction.
        betas: Prelec's beta of each alpha, by default 1.

    Columns: alpha, estimator, n, seed, value, truth, error.
    """
    rows = []
    for n, seed in product(sizes, range(seeds)):
        samples = sampler(n, np.random.default_rng([seed, n]))
        for (name, (neighbours, correction)), alpha in product(estimators.items(), truths):
            beta = (betas or {}).get(alpha, 1.0)
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
        seen = part["absolute_bias"].where(part["absolute_bias"] > 2 * part["bias_error"])
        for name, values in (("bias", seen), ("variance", part["variance"])):
            fit = stats.linregress(np.log(part["n"]), np.log(values))  # NaN if one value is
            row |= {f"{name} slope": fit.slope, f"{name} s.e.": fit.stderr}
        rows.append(row)
    return pd.DataFrame(rows)
