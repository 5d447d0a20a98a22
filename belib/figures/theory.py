"""Figures of the theory: weightings, entropies of pmfs, estimators."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import ticker
from matplotlib.axes import Axes
from scipy import stats

from belib.entropy import behavioral_entropy, renyi_entropy, shannon_entropy
from belib.figures.style import SHANNON, curves, legend, objective_color
from belib.results.tables import checked
from belib.weighting import Prelec, prelec_beta

_REFERENCE: dict[str, Any] = {"color": "black", "linestyle": ":"}
_ESTIMATORS: dict[str, Any] = {"hue": "estimator", "palette": "colorblind"}


def perceived_normal(alphas: Sequence[float]) -> Axes:
    """Plot the standard normal density as Prelec's weighting, beta = 1, perceives it (figure 2)."""
    _, ax = plt.subplots(figsize=(9, 5))
    x = np.linspace(-4, 4, 801)
    density = stats.norm.pdf(x)
    curves(ax, x, "behavioral", alphas, lambda alpha: Prelec(alpha)(density))
    ax.plot(x, density, label="the density itself\n(α = 1)", **SHANNON)
    ax.set(xlabel="x", ylabel="perceived density", ylim=(0, None))
    return legend(ax)


def bernoulli_entropies(alphas: Sequence[float], qs: Sequence[float]) -> np.ndarray:
    """Plot the entropies of a Bernoulli trial over p (figure 2): behavioral, and Renyi."""
    _, axes = plt.subplots(1, 2, figsize=(14, 5), sharey=True)
    p = np.linspace(0, 1, 401)
    pmf = np.stack([p, 1 - p], -1)
    curves(axes[0], p, "behavioral", alphas, lambda alpha: behavioral_entropy(pmf, alpha=alpha))
    curves(axes[1], p, "renyi", qs, lambda q: renyi_entropy(pmf, q=q))
    axes[1].plot(p, renyi_entropy(pmf, q=np.inf), "--", color="darkred", label="RE q → ∞")
    for ax, title in zip(axes, ("Behavioral entropy, β for M = 2", "Rényi entropy"), strict=True):
        ax.plot(p, shannon_entropy(pmf), label="SE", **SHANNON)
        ax.set(xlabel="p", ylabel="entropy (nats)", title=title, ylim=(0, None))
        legend(ax)
    return axes


def uniform_on_part(table: pd.DataFrame) -> Axes:
    """Plot the entropy of the uniform pmf on m of M outcomes, relative to log M.

    The table has columns `m`, `alpha`, `entropy` and `n_outcomes`.
    """
    table = checked(table, numbers=["m", "alpha", "entropy", "n_outcomes"]).sort_values("m")
    _, ax = plt.subplots(figsize=(9, 5))
    table["share"] = table["m"] / table["n_outcomes"]
    table["relative"] = table["entropy"] / np.log(table["n_outcomes"])
    for alpha, rows in table.groupby("alpha"):
        curves(ax, rows["share"], "behavioral", [alpha], lambda _, rows=rows: rows["relative"])
    ax.axhline(1, label="uniform on all", **_REFERENCE)
    ax.set(xlabel="share of outcomes that are possible", ylabel="entropy / log M")
    ax.set(yscale="log", ylim=(0.1, 10))
    return legend(ax)


def entropies_by_parameter(table: pd.DataFrame) -> Axes:
    """Plot the behavioral entropy over alpha and the Renyi entropy over q, of one pmf.

    The table has columns `objective` (behavioral, renyi), `parameter` and `entropy`.
    """
    table = checked(table, names=["objective"], numbers=["parameter", "entropy"])
    _, ax = plt.subplots(figsize=(9, 5))
    for name, label in (("behavioral", "behavioral, over α"), ("renyi", "Rényi, over q")):
        rows = table[table["objective"] == name].sort_values("parameter")
        ax.plot(rows["parameter"], rows["entropy"], color=objective_color(name), label=label)
    ax.axvline(1, label="Shannon", **_REFERENCE)
    ax.set(xlabel="parameter", ylabel="entropy (nats)", xscale="log", ylim=(0, None))
    return legend(ax)


def weighting_slopes(alphas: Sequence[float], n_outcomes: int) -> np.ndarray:
    """Plot the slope of Prelec's weighting near p = 0 and 1, which theorem 1 assumes is bounded."""
    _, axes = plt.subplots(1, 2, figsize=(14, 5), sharey=True)
    distance = np.logspace(-12, -0.5, 300)

    def slope(alpha: float, log_p: np.ndarray) -> np.ndarray:
        beta = prelec_beta(alpha, n_outcomes)
        log_ratio = Prelec(alpha, beta).log(log_p) - log_p
        return alpha * beta * (-log_p) ** (alpha - 1) * np.exp(log_ratio)

    for ax, log_p, end in zip(axes, (np.log(distance), np.log1p(-distance)), "01", strict=True):
        curves(ax, distance, "behavioral", alphas, lambda alpha, at=log_p: slope(alpha, at))
        ax.set(xscale="log", yscale="log", ylim=(1e-6, 1e9), title=f"towards p = {end}")
    axes[0].set(xlabel="p", ylabel="slope of w")
    axes[1].set_xlabel("1 - p")
    return legend(axes)


def running_estimates(table: pd.DataFrame, truth: float) -> Axes:
    """Plot mean and sd of estimates over the sample size, beside a truth in nats.

    The table has columns `n`, `estimator` and `value`.
    """
    table = checked(table, names=["estimator"], numbers=["n", "value"])
    _, ax = plt.subplots(figsize=(9, 5))
    drawn = {**_ESTIMATORS, "style": "estimator", "markers": True, "errorbar": "sd"}
    sns.lineplot(table, x="n", y="value", ax=ax, **drawn)
    ax.axhline(truth, label="the true entropy", **_REFERENCE)
    ax.set(xscale="log", xlabel="samples", ylabel="estimate (nats)")
    ax.set_ylim(0, 1.1 * max(truth, table["value"].max()))
    _mark_sizes(ax, table["n"])
    return legend(ax)


def convergence(table: pd.DataFrame, y: str, ylabel: str) -> np.ndarray:
    """Plot |bias| or n times the variance over n, both logarithmic: one Axes per alpha.

    The table has columns `n`, `alpha`, `estimator` and `y`.
    """
    panels = checked(table, names=["estimator"], numbers=["n", "alpha", y]).groupby("alpha")
    _, axes = plt.subplots(1, len(panels), figsize=(15, 4.5), sharey=True, squeeze=False)
    drawn = {**_ESTIMATORS, "style": "estimator", "markers": True, "dashes": False}
    for ax, (alpha, rows) in zip(axes[0], panels, strict=True):
        sns.lineplot(rows, x="n", y=y, ax=ax, **drawn)
        ax.set(xscale="log", yscale="log", xlabel="samples n", title=f"α = {alpha:g}")
        ax.set_ylabel(ylabel)
        _mark_sizes(ax, rows["n"])
    return legend(axes[0])


def _mark_sizes(ax: Axes, sizes: pd.Series) -> None:
    """Set at most four ticks of a logarithmic axis, at sample sizes."""
    ticks = np.unique(sizes)
    ticks = ticks[:: -(-len(ticks) // 4)]
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
    ax.xaxis.set_minor_locator(ticker.NullLocator())


def estimator_bars(table: pd.DataFrame) -> Axes:
    """Plot estimates over the truth: a bar for each case and estimator, a dot per repetition.

    The table has columns `case`, `estimator`, `value` and `truth`.
    """
    table = checked(table, names=["case", "estimator"], numbers=["value", "truth"])
    table = table.assign(ratio=table["value"] / table["truth"])
    _, ax = plt.subplots(figsize=(11, 5))
    shared = {"x": "case", "y": "ratio", "hue": "estimator", "ax": ax}
    sns.barplot(table, errorbar=None, palette="pastel", **shared)
    sns.stripplot(table, dodge=True, size=4, palette="dark:black", legend=False, **shared)
    ax.axhline(1, **_REFERENCE)
    ax.set(xlabel="", ylabel="estimate / truth", ylim=(0, None))
    return legend(ax)
