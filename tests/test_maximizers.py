import numpy as np
import pytest

from belib.entropy import behavioral_entropy, largest_admissible_alpha
from belib.maximizers import maximizing_pmf


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_with_few_outcomes_it_is_the_uniform_pmf(alpha):
    np.testing.assert_allclose(maximizing_pmf(3, alpha=alpha), 1 / 3, atol=1e-6)


def test_above_the_admissible_alpha_a_part_of_the_outcomes_is_better():
    assert largest_admissible_alpha(6) == pytest.approx(3.378, abs=1e-3)
    np.testing.assert_allclose(maximizing_pmf(6, alpha=3.3), 1 / 6, atol=1e-5)
    pmf = maximizing_pmf(6, alpha=5.0)
    np.testing.assert_allclose(np.sort(pmf), [0, 0.2, 0.2, 0.2, 0.2, 0.2], atol=1e-3)
    assert behavioral_entropy(pmf, alpha=5.0) > 1.02 * np.log(6)


def test_it_drops_the_outcome_that_was_least_probable_and_beats_random_pmfs():
    start = np.array([0.1, 0.3, 0.02, 0.2, 0.2, 0.18])
    pmf = maximizing_pmf(6, alpha=5.0, start=start)
    assert pmf.argmin() == 2
    others = np.random.default_rng(0).dirichlet(np.ones(6), 20_000)
    best = behavioral_entropy(others, alpha=5.0).max()
    assert behavioral_entropy(pmf, alpha=5.0) >= best
