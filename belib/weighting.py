"""Prelec's probability weighting, which behavioral entropy composes with Shannon's entropy."""

import math


def prelec_beta(alpha: float, n_outcomes: int) -> float:
    """Prelec's beta that makes 1/M a fixed point of the weighting: beta = (log M)^(1 - alpha).

    With it the uniform pmf over M = `n_outcomes` outcomes keeps the entropy log M for every alpha.
    Paper, section 2: beta = exp((1 - alpha) log log M); M is the representation's dimension in RL.

    Raises ValueError unless alpha > 0 and M >= 2.
    """
    if not (alpha > 0 and math.isfinite(alpha)):
        raise ValueError(f"alpha must be positive and finite, got {alpha}")
    if n_outcomes < 2:
        raise ValueError(f"n_outcomes must be at least 2, got {n_outcomes}")
    return math.log(n_outcomes) ** (1 - alpha)
