"""The smallest enclosing ball: a ball that has both halves of optimality is the smallest."""

import numpy as np
import pytest

from belib.coverage import smallest_ball


def certify(points, ball):
    """The two halves of optimality: nothing outside, and the centre in the support's hull."""
    support = points[ball.support]
    assert np.linalg.norm(points - ball.center, axis=1).max() <= ball.radius * (1 + 1e-14)
    assert np.allclose(ball.weights @ support, ball.center, rtol=0, atol=1e-12 * ball.radius)
    on_boundary = np.linalg.norm(support - ball.center, axis=1)
    assert on_boundary == pytest.approx(np.full(len(support), ball.radius), rel=1e-11)
    assert (ball.weights > 0).all()
    assert ball.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(ball.support) > 0).all()
    assert len(support) <= points.shape[1] + 1


def test_known_balls():
    """A cube's and a cross-polytope's corners are on one sphere; a simplex's are its support."""
    corners = np.array(np.meshgrid(*[(0.0, 1.0)] * 6)).reshape(6, -1).T
    cross = np.vstack([np.eye(24), -np.eye(24)])
    simplex = np.eye(25)  # 24-dimensional, in 25 dimensions: side sqrt(2), radius sqrt(24 / 25)
    for points, radius in ((corners, np.sqrt(6) / 2), (cross, 1.0), (simplex, np.sqrt(24 / 25))):
        ball = smallest_ball(points)
        certify(points, ball)
        assert ball.radius == pytest.approx(radius, rel=1e-13)
    assert len(smallest_ball(simplex).support) == 25
    ball = smallest_ball(np.full((50, 3), 0.1))
    assert (ball.radius, ball.weights, set(ball.center)) == (0, 1, {0.1})


@pytest.mark.parametrize("d", [1, 2, 3, 24, 78])
def test_all_kinds_of_points(d):
    random = np.random.default_rng(d)
    normal = random.normal(size=(400, d))
    sphere = normal / np.linalg.norm(normal, axis=1)[:, None]
    kinds = {
        "normal": normal,
        "few": normal[: max(1, d // 2)],
        **{f"only {n}": normal[9 * n :][:n] for n in range(1, 10)},
        "walk": normal.cumsum(0),
        "heavy tails": random.standard_t(1, (400, d)),
        "duplicates": np.repeat(normal, 3, axis=0),
        "nearly duplicates": np.repeat(normal, 3, axis=0) + 1e-13 * random.normal(size=(1200, d)),
        "sphere": sphere,
        "nearly a sphere": sphere * (1 + 1e-11 * random.normal(size=(400, 1))),
        "lattice": random.integers(0, 3, (400, d)),
        "plane": normal[:, :1] * random.normal(size=d) + normal[:, -1:] * random.normal(size=d),
        "one sensor decides": normal * np.append(1e6, np.ones(d - 1)),
    }
    for points in kinds.values():
        certify(points, smallest_ball(points))


def test_a_growing_set_continues_from_its_last_support():
    points = np.random.default_rng(0).normal(size=(6_000, 24)).cumsum(0)
    ball = smallest_ball(points, start=smallest_ball(points[:2_000]).support)
    alone = smallest_ball(points)
    assert ball.radius == pytest.approx(alone.radius, rel=1e-12)
    assert ball.support.tolist() == alone.support.tolist()


def test_bad_points_and_starts_are_refused():
    for points, message in (
        (np.zeros(3), "points must have 2 axes"),
        ([[0.0, np.nan]], r"points must be finite, got nan at index \[0, 1\]"),
        ([[1j]], "points must hold real numbers"),
        (np.zeros((3, 0)), "zero-size array"),
    ):
        with pytest.raises(ValueError, match=message):
            smallest_ball(points)
    for start in ([2], [0.5], []):
        with pytest.raises(IndexError):
            smallest_ball([[0.0], [1.0]], start=start)
