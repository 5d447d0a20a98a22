"""Figures of the theory: weightings, entropies of small pmfs, what maximises them, estimators."""

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
from belib.figures.style import OUTSIDE, SHANNON, objective_color
from belib.tables import checked
from belib.weighting import Prelec, prelec_beta


def perceived_normal(alphas: Sequence[float]) -> Axes:
    """The standard normal density as Prelec's weighting perceives it, beta = 1 (figure 2 left)."""
    _, ax = plt.subplots(figsize=(9, 5))
    x = np.linspace(-4, 4, 801)
    density = stats.norm.pdf(x)
    for alpha in alphas:
        color, label = objective_color("behavioral", alpha), f"α = {alpha:g}"
        ax.plot(x, Prelec(alpha)(density), color=color, label=label)
    ax.plot(x, density, label="the density itself\n(α = 1)", **SHANNON)
    ax.set(xlabel="x", ylabel="perceived density", ylim=(0, None))
    ax.legend(**OUTSIDE)
    return ax


def bernoulli_entropies(alphas: Sequence[float], qs: Sequence[float]) -> np.ndarray:
    """Entropies of a Bernoulli trial over p (figure 2 right): behavioral, and Renyi; two Axes."""
    _, axes = plt.subplots(1, 2, figsize=(14, 5), sharey=True)
    p = np.linspace(0, 1, 401)
    pmf = np.stack([p, 1 - p], -1)
    for alpha in alphas:
        style = {"color": objective_color("behavioral", alpha), "label": f"α = {alpha:g}"}
        axes[0].plot(p, behavioral_entropy(pmf, alpha=alpha), **style)
    for q in qs:
        style = {"color": objective_color("renyi", q), "label": f"q = {q:g}"}
        axes[1].plot(p, renyi_entropy(pmf, q=q), **style)
    axes[1].plot(p, renyi_entropy(pmf, q=np.inf), "--", color="darkred", label="q → ∞")
    for ax, title in zip(axes, ("Behavioral entropy, β for M = 2", "Rényi entropy"), strict=True):
        ax.plot(p, shannon_entropy(pmf), label="Shannon", **SHANNON)
        ax.set(xlabel="p", title=title, ylim=(0, None))
        ax.legend(**OUTSIDE)
    axes[0].set_ylabel("entropy (nats)")
    return axes


def uniform_on_part(table: pd.DataFrame) -> Axes:
    """Entropy of the uniform pmf on m of M outcomes, over m, relative to log M.

    Args:
        table: columns `m`, `alpha`, `entropy`, `n_outcomes`.
    """
    _, ax = plt.subplots(figsize=(9, 5))
    table = checked(table, numbers=["m", "alpha", "entropy", "n_outcomes"]).sort_values("m")
    for alpha, rows in table.groupby("alpha"):
        color, label = objective_color("behavioral", alpha), f"α = {alpha:g}"
        relative = rows["entropy"] / np.log(rows["n_outcomes"])
        ax.plot(rows["m"] / rows["n_outcomes"], relative, color=color, label=label)
    ax.axhline(1, color="black", linestyle=":", label="uniform on all")
    ax.set(xlabel="share of outcomes that are possible", ylabel="entropy / log M", yscale="log")
    ax.set_ylim(0.1, 10)
    ax.legend(**OUTSIDE)
    return ax


def entropies_by_parameter(table: pd.DataFrame) -> Axes:
    """Behavioral entropy over alpha and Renyi entropy over q, of one pmf.

    Args:
        table: columns `objective` (behavioral, renyi), `parameter`, `entropy`.
    """
    _, ax = plt.subplots(figsize=(9, 5))
    labels = {"behavioral": "behavioral, over α", "renyi": "Rényi, over q"}
    table = checked(table, names=["objective"], numbers=["parameter", "entropy"])
    for objective, rows in table.sort_values("parameter").groupby("objective"):
        color = objective_color(str(objective), 1.5)
        ax.plot(rows["parameter"], rows["entropy"], color=color, label=labels[objective])
    ax.axvline(1, color="black", linestyle=":", label="Shannon")
    ax.set(xlabel="parameter", ylabel="entropy (nats)", xscale="log", ylim=(0, None))
    ax.legend(**OUTSIDE)
    return ax


def weighting_slopes(alphas: Sequence[float], n_outcomes: int) -> Axes:
    """The slope of Prelec's weighting towards p = 0 and p = 1, which theorem 1 assumes bounded."""
    _, axes = plt.subplots(1, 2, figsize=(14, 5), sharey=True)
    distance = np.logspace(-12, -0.5, 300)
    for ax, log_p, name in (
        (axes[0], np.log(distance), "p"),
        (axes[1], np.log1p(-distance), "1 - p"),
    ):
        for alpha in alphas:
            beta = prelec_beta(alpha, n_outcomes)
            log_slope = Prelec(alpha, beta).log(log_p) - log_p
            slope = alpha * beta * (-log_p) ** (alpha - 1) * np.exp(log_slope)
            color = objective_color("behavioral", alpha)
            ax.plot(distance, slope, color=color, label=f"α = {alpha:g}")
        ax.set(xlabel=name, xscale="log", yscale="log", ylim=(1e-6, 1e9))
    axes[0].set(ylabel="slope of w", title="towards p = 0")
    axes[1].set_title("towards p = 1")
    axes[1].legend(**OUTSIDE)
    return axes


def running_estimates(table: pd.DataFrame, truth: float) -> Axes:
    """Estimates over the sample size, with a truth that they do not approach.

    Args:
        table: columns `n`, `estimator`, `value`; several rows a cell show their spread.
        truth: nats.
    """
    table = checked(table, names=["estimator"], numbers=["n", "value"])
    _, ax = plt.subplots(figsize=(9, 5))
    names: dict[str, Any] = {"hue": "estimator", "style": "estimator", "palette": "colorblind"}
    sns.lineplot(table, x="n", y="value", errorbar="sd", markers=True, ax=ax, **names)
    ax.axhline(truth, color="black", linestyle=":", label="the true entropy")
    ax.set(xscale="log", xlabel="samples", ylabel="estimate (nats)")
    ax.set_ylim(0, 1.1 * max(truth, table["value"].max()))
    _mark_sizes(ax, table["n"])
    ax.legend(**OUTSIDE)
    return ax


def convergence(table: pd.DataFrame, y: str, ylabel: str) -> np.ndarray:
    """|bias| or n times the variance over n, log-log: Axes for each alpha, a colour an estimator.

    Args:
        table: columns `n`, `alpha`, `estimator` and `y`.
    """
    table = checked(table, names=["estimator"], numbers=["n", "alpha", y])
    panels = list(table.groupby("alpha"))
    _, axes = plt.subplots(1, len(panels), figsize=(15, 4.5), sharey=True, squeeze=False)
    names: dict[str, Any] = {"hue": "estimator", "style": "estimator", "palette": "colorblind"}
    for ax, (alpha, rows) in zip(axes[0], panels, strict=True):
        sns.lineplot(rows, x="n", y=y, markers=True, dashes=False, ax=ax, **names)
        ax.set(
            xscale="log", yscale="log", xlabel="samples n", ylabel=ylabel, title=f"α = {alpha:g}"
        )
        _mark_sizes(ax, rows["n"])
        ax.get_legend().remove()
    axes[0, -1].legend(**OUTSIDE)
    return axes[0]


def _mark_sizes(ax: Axes, sizes: pd.Series) -> None:
    """Ticks of a logarithmic axis at the sample sizes themselves, four at most."""
    shown = np.unique(sizes)
    shown = shown[:: -(-len(shown) // 4)]
    ax.set_xticks(shown, [f"{n:,}" for n in shown])
    ax.xaxis.set_minor_locator(ticker.NullLocator())


def estimator_bars(table: pd.DataFrame) -> Axes:
    """Estimates beside the truth: a bar a case and estimator, a dot a repetition.

    Args:
        table: columns `case`, `estimator`, `value`, `truth`.
    """
    table = checked(table, names=["case", "estimator"], numbers=["value", "truth"])
    _, ax = plt.subplots(figsize=(11, 5))
    shared = {"x": "case", "hue": "estimator", "ax": ax}
    table = table.assign(ratio=table["value"] / table["truth"])
    sns.barplot(table, y="ratio", errorbar=None, palette="pastel", **shared)
    sns.stripplot(
        table, y="ratio", dodge=True, size=4, palette="dark:black", legend=False, **shared
    )
    ax.axhline(1, color="black", linestyle=":")
    ax.set(xlabel="", ylabel="estimate / truth", ylim=(0, None))
    sns.move_legend(ax, **OUTSIDE, title=None)
    return ax
