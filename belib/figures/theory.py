"""Figures of the theory: weightings, entropies of pmfs, estimators."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from scipy import stats

from belib.entropy import behavioral_entropy, renyi_entropy, shannon_entropy
from belib.figures.style import SHANNON, curves, legend, objective_color
from belib.weighting import Prelec, prelec_beta


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
    """Plot H / log M of the uniform pmf on m of M outcomes (rows: m) over m / M, for all alphas."""
    _, ax = plt.subplots(figsize=(9, 5))
    m, most = table.index, table.index.max()
    curves(ax, m / most, "behavioral", table.columns, lambda alpha: table[alpha] / np.log(most))
    ax.axhline(1, label="uniform on all", **SHANNON)
    ax.set(xlabel="share of outcomes that are possible", ylabel="entropy / log M")
    ax.set(yscale="log", ylim=(0.1, 10))
    return legend(ax)


def entropies_by_parameter(table: pd.DataFrame) -> Axes:
    """Plot the entropies `behavioral` and `renyi` of a pmf, in nats, over the index: alpha or q."""
    _, ax = plt.subplots(figsize=(9, 5))
    for name, label in (("behavioral", "behavioral, over α"), ("renyi", "Rényi, over q")):
        ax.plot(table[name], color=objective_color(name), label=label)
    ax.axvline(1, label="Shannon", **SHANNON)
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
    """Plot mean and sd of each `estimator`'s `value` over `n`, beside a truth, in nats."""
    _, ax = plt.subplots(figsize=(9, 5))
    _over_size(ax, table, "value", errorbar="sd")
    ax.axhline(truth, label="the true entropy", **SHANNON)
    ax.set(ylabel="estimate (nats)", ylim=(0, 1.1 * max(truth, table["value"].max())))
    return legend(ax)


def convergence(table: pd.DataFrame, y: str, ylabel: str) -> np.ndarray:
    """Plot the column `y` of each `estimator` over `n`, on log axes: one Axes per `alpha`."""
    panels = table.groupby("alpha")
    _, axes = plt.subplots(1, len(panels), figsize=(15, 4.5), sharey=True, squeeze=False)
    for ax, (alpha, rows) in zip(axes[0], panels, strict=True):
        _over_size(ax, rows, y, dashes=False)
        ax.set(yscale="log", ylabel=ylabel, title=f"α = {alpha:g}")
    return legend(axes[0])


def _over_size(ax: Axes, table: pd.DataFrame, y: str, **options: Any) -> None:
    """Plot a line per estimator over the sample size, with at most four ticks, at sizes."""
    drawn = {"hue": "estimator", "style": "estimator", "palette": "colorblind", "markers": True}
    sns.lineplot(table, x="n", y=y, ax=ax, **drawn, **options)
    ticks = np.unique(table["n"])[:: -(-table["n"].nunique() // 4)]
    ax.set(xscale="log", xlabel="samples n")
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
    ax.minorticks_off()


def estimator_bars(table: pd.DataFrame) -> Axes:
    """Plot `value` / `truth`: one bar per `case` and `estimator`, one dot per repetition."""
    table = table.assign(ratio=table["value"] / table["truth"])
    _, ax = plt.subplots(figsize=(11, 5))
    shared = {"x": "case", "y": "ratio", "hue": "estimator", "ax": ax}
    sns.barplot(table, errorbar=None, palette="pastel", **shared)
    sns.stripplot(table, dodge=True, size=4, palette="dark:black", legend=False, **shared)
    ax.axhline(1, **SHANNON)
    ax.set(xlabel="", ylabel="estimate / truth", ylim=(0, None))
    return legend(ax)
