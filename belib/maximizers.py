"""Which pmf has the most behavioral entropy: the uniform one, but for small alpha only."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from belib.arrays import real_array, whole_number
from belib.weighting import Prelec, entropy_term, prelec_beta


def maximizing_pmf(
    n_outcomes: int, *, alpha: float, start: NDArray | None = None
) -> NDArray[np.float64]:
    """The pmf (M,) over M = `n_outcomes` with the most behavioral entropy, beta conditioned on M.

    Found by ascent in the logits from `start` (a pmf), and from pmfs that spread evenly over all,
    or nearly all over 1, 2, ... of the outcomes, those most probable in `start` first. It is the
    best found, which is no proof that there is no better one.

    >>> maximizing_pmf(6, alpha=5.0).round(3)
    array([0.2, 0.2, 0.2, 0.2, 0.2, 0. ])
    """
    n_outcomes = whole_number("n_outcomes", n_outcomes, least=2)
    weighting = Prelec(alpha, prelec_beta(alpha, n_outcomes))
    uniform = np.full(n_outcomes, 1 / n_outcomes)
    start = uniform if start is None else real_array("start", start, ndim=1)
    if len(start) != n_outcomes:
        raise ValueError(f"start must have n_outcomes = {n_outcomes} entries, got {len(start)}")
    rank = np.argsort(np.argsort(-start, kind="stable"))
    parts = [np.where(rank < m, 1.0, 0.02) for m in range(1, n_outcomes)]

    def loss(logits: NDArray) -> float:
        return -entropy_term(weighting, log_softmax(logits)).sum()

    starts = [np.log(np.maximum(each, 1e-6)) for each in (uniform, start, *parts)]
    ends = [minimize(loss, logits, method="L-BFGS-B") for logits in starts]
    best = min(ends, key=lambda end: round(end.fun, 9))  # of equals the first: the uniform one
    return np.exp(log_softmax(best.x))
