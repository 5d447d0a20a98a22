"""Our entropy estimators against the paper's plug-in: root mean squared errors at equal k.

`python benchmarks/estimators.py` writes results/estimators.csv, each ratio beside its target. `make
bench` compares times with other libraries.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from measuring import provenance, write_table
from numpy.typing import NDArray
from scipy import stats

from belib.estimators import KNNSample, twiced
from belib.weighting import Prelec, entropy_term, prelec_beta

ALPHAS = (0.2, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0, 3.0, 5.0)
WEIGHTINGS = [Prelec(a, b) for a in ALPHAS for b in dict.fromkeys((1.0, prelec_beta(a, 512)))]
DENSITIES = {
    "truncated normal on [-3, 3]": stats.truncnorm(-3, 3),
    "Beta(2, 2) on [0, 4]": stats.beta(2, 2, scale=4),
}
RMSE_TARGETS = {1: 0.30, 2: 0.32, 4: 0.50}


def true_entropies(density: stats.rv_continuous, d: int) -> NDArray[np.float64]:
    """Return behavioral entropies of d independent copies by tensor Gauss-Legendre.

    Both densities are symmetric: nodes cover half the support and are denser at its end.
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
    """Return the integrand of `generalized_behavioral_entropy_knn`."""

    def ratio(u: NDArray) -> NDArray:
        return entropy_term(weighting, -u, -u)

    return ratio if sample.correction is None else lambda u: twiced(ratio, u, sample.k)


def rmse_rows(n: int, seeds: int) -> Iterator[dict]:
    """Yield geometric means of RMSE / RMSE of the plug-in, over densities and weightings."""
    for d, target in RMSE_TARGETS.items():
        ratios = []
        for density in DENSITIES.values():
            truth = true_entropies(density, d)
            errors = {None: [], "iterated": []}
            for seed in range(seeds):
                points = density.rvs((n, d), random_state=np.random.default_rng(seed))
                for correction, differences in errors.items():
                    sample = KNNSample(points, correction=correction)
                    differences.append(
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="samples")
    parser.add_argument("--seeds", type=int, default=30, help="samples drawn")
    arguments = parser.parse_args()
    head, rows = provenance("numpy", "scipy", "scikit-learn"), []
    for row in rmse_rows(arguments.n, arguments.seeds):
        print(row, flush=True)
        rows.append(row)
    write_table("estimators", pd.DataFrame(rows), head)


if __name__ == "__main__":
    main()
