"""Our entropy estimators against the paper's plug-in and against the libraries people use.

`python benchmarks/estimators.py` writes results/estimators.csv: root mean squared errors at equal
k, times, and peak memory, each beside what it has to reach. Ratios are of runs in one process.
"""

import argparse
import multiprocessing
import resource
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from measuring import in_turn, provenance, spread, write_table
from numpy.typing import NDArray
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from belib.estimators import KNNSample, shannon_entropy_knn
from belib.estimators.twicing import twiced
from belib.knn import _search_brute, _search_tree, knn_distances
from belib.weighting import Prelec, entropy_term, prelec_beta

ALPHAS = (0.2, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0, 3.0, 5.0)
WEIGHTINGS = [Prelec(a, b) for a in ALPHAS for b in dict.fromkeys((1.0, prelec_beta(a, 512)))]
DENSITIES = {
    "truncated normal on [-3, 3]": stats.truncnorm(-3, 3),
    "Beta(2, 2) on [0, 4]": stats.beta(2, 2, scale=4),
}
RMSE_TARGETS = {1: 0.30, 2: 0.32, 4: 0.50}
COLUMNS = ("what", "setting", "ours", "other", "ratio", "spread", "target", "repetitions")


def true_entropies(density: stats.rv_continuous, d: int) -> NDArray[np.float64]:
    """Behavioral entropies of d independent copies, one a weighting, by tensor Gauss-Legendre.

    Both densities are symmetric: half the support, with nodes that crowd at its end.
    """
    low, high = density.support()
    half = (high - low) / 2
    node, weight = np.polynomial.legendre.leggauss(40)
    t = (node + 1) / 2
    log_f = log_f_1 = density.logpdf(low + half * t**3)
    log_dx = log_dx_1 = np.log(2 * half * 3 * t**2 * weight / 2)
    for _ in range(d - 1):
        log_f, log_dx = np.add.outer(log_f, log_f_1), np.add.outer(log_dx, log_dx_1)
    return np.array([entropy_term(w, log_f, -log_dx).sum() for w in WEIGHTINGS])


def integrand(weighting: Prelec, sample: KNNSample) -> Callable:
    """Return what `generalized_behavioral_entropy_knn` takes the mean of."""

    def ratio(u: NDArray) -> NDArray:
        return entropy_term(weighting, -u, -u)

    return ratio if sample.correction is None else lambda u: twiced(ratio, u, sample.k)


def rmse_rows(n: int, seeds: int) -> Iterator[dict]:
    """Geometric mean, over densities and weightings, of the RMSE over the plug-in's."""
    for d, target in RMSE_TARGETS.items():
        ratios = []
        for density in DENSITIES.values():
            truth = true_entropies(density, d)
            errors = {None: [], "iterated": []}
            for seed in range(seeds):
                points = density.rvs((n, d), random_state=np.random.default_rng(seed))
                for correction, found in errors.items():
                    sample = KNNSample(points, correction=correction)
                    found.append(
                        [sample.mean(integrand(w, sample)).value for w in WEIGHTINGS] - truth
                    )
            plug_in, ours = (np.sqrt(np.mean(np.square(e), axis=0)) for e in errors.values())
            ratios.extend((ours / plug_in)[np.abs(truth) > 0.01])
        yield {
            "what": "RMSE, iterated correction over the paper's plug-in",
            "setting": f"n = {n}, k = 5, d = {d}",
            "ratio": np.exp(np.mean(np.log(ratios))),
            "spread": f"{len(ratios)} cases from {min(ratios):.2f} to {max(ratios):.2f}",
            "target": f"<= {target}",
            "repetitions": seeds,
        }


def against(
    what: str, setting: str, ours: Callable, other: Callable, target: str, repeats: int
) -> dict:
    """A row of median seconds, measured in turn; raises where the two answers differ."""
    times, answers = in_turn([ours, other], repeats, warm_up=0)
    # infomeasure has psi(n) for log(n - 1), which is 1 / 2n more.
    np.testing.assert_allclose(*answers, rtol=1e-5, err_msg=what)
    mine, theirs = np.median(times, axis=1)
    return {
        "what": what,
        "setting": setting,
        "ours": mine,
        "other": theirs,
        "ratio": theirs / mine,
        "spread": f"seconds, {spread(times)}",
        "target": target,
        "repetitions": repeats,
    }


def speed_rows(scale: float, repeats: int) -> Iterator[dict]:
    """Seconds of other libraries over ours: above 1 we are faster."""
    random = np.random.default_rng(0)
    try:
        import infomeasure
    except ImportError:
        print("infomeasure is not installed: its rows are left out")
        infomeasure = None
    for n, d, target in ((100_000, 4, ">= 1.5"), (10_000, 24, ">= 8")):
        x = random.normal(size=(int(n * scale), d))
        if infomeasure is not None:
            yield against(
                "shannon_entropy_knn against infomeasure, both Euclidean",
                f"n = {len(x)}, d = {d}, k = 12",
                lambda x=x: shannon_entropy_knn(x, k=12).value,
                lambda x=x: infomeasure.entropy(
                    x, approach="kl", k=12, noise_level=0, minkowski_p=2, base="e"
                ),
                target,
                repeats,
            )
    x = random.normal(size=(int(100_000 * scale), 24))
    brute = NearestNeighbors(n_neighbors=12, algorithm="brute").fit(x)
    yield against(
        "knn_distances against sklearn's brute search",
        f"n = {len(x)}, d = 24, k = 12",
        lambda: knn_distances(x, k=12),
        lambda: brute.kneighbors()[0],
        ">= 1",
        1 if scale == 1 else repeats,
    )
    for d in (4, 8, 12):
        x = random.normal(size=(int(10_000 * scale), d))
        yield against(
            "products against tree",
            f"n = {len(x)}, d = {d}, k = 12",
            lambda x=x: _search_brute(x, 13)[0],
            lambda x=x: _search_tree(x, 13, 2.0)[0],
            "",
            repeats,
        )


def _peak_of_search(n: int, d: int) -> tuple[float, float]:
    x = np.random.default_rng(0).normal(size=(n, d))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    knn_distances(x, k=12)
    return before / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def memory_row(n: int) -> dict:
    """Peak memory of a fresh process in GiB: before the search, and with it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        before, peak = pool.apply(_peak_of_search, (n, 24))
    return {
        "what": "peak memory of the process, GiB (other: before the search)",
        "setting": f"n = {n}, d = 24, k = 12",
        "ours": peak,
        "other": before,
        "target": "< 1",
        "repetitions": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="samples, of the errors")
    parser.add_argument("--seeds", type=int, default=30, help="samples drawn, of the errors")
    parser.add_argument("--scale", type=float, default=1.0, help="share of n, of the times")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions, of the times")
    arguments = parser.parse_args()
    head, rows = provenance("numpy", "scipy", "scikit-learn", "torch"), []
    for source in (
        speed_rows(arguments.scale, arguments.repeats),
        iter([memory_row(int(100_000 * arguments.scale))]),
        rmse_rows(arguments.n, arguments.seeds),
    ):
        for row in source:
            print({name: row.get(name, "") for name in COLUMNS}, flush=True)
            rows.append(row)
    write_table("estimators", pd.DataFrame(rows, columns=COLUMNS), head)


if __name__ == "__main__":
    main()
