"""The smallest enclosing ball: theorems about it, and a brute force over all supports."""

from itertools import combinations

import numpy as np
import pytest

from belib.coverage.ball import NotConvergedError, smallest_ball


def certify(points, ball):
    """The two halves of optimality: nothing outside, and the centre in the support's hull."""
    points = np.asarray(points, dtype=np.float64)
    support = points[ball.support]
    assert np.linalg.norm(points - ball.center, axis=1).max() <= ball.radius * (1 + 1e-14)
    assert np.allclose(ball.weights @ support, ball.center, rtol=0, atol=1e-12 * ball.radius)
    on_boundary = np.linalg.norm(support - ball.center, axis=1)
    assert on_boundary == pytest.approx(np.full(len(support), ball.radius), rel=1e-11)
    assert (ball.weights > 0).all()
    assert ball.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(ball.support) > 0).all()
    assert len(support) <= points.shape[1] + 1


def brute_force(points):
    """The smallest of all circumscribed balls of up to d + 1 points that hold the others."""
    best = np.inf
    for m in range(1, points.shape[1] + 2):
        for rows in combinations(range(len(points)), m):
            first, *others = points[list(rows)]
            sides = np.reshape(others, (-1, points.shape[1])) - first
            center = first + np.linalg.pinv(sides) @ (np.square(sides).sum(1) / 2)
            best = min(best, max(np.linalg.norm(points - center, axis=1)))
    return best


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_brute_force_finds_no_smaller_ball(n, d):
    for seed in range(5):
        points = np.random.default_rng([n, d, seed]).normal(size=(n, d))
        ball = smallest_ball(points)
        assert ball.radius == pytest.approx(brute_force(points), rel=1e-12, abs=1e-15)


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
    obtuse = smallest_ball([[0, 0], [4, 0], [1, 1]])
    assert obtuse.support.tolist() == [0, 1]
    assert obtuse.center.tolist() == [2, 0]


@pytest.mark.parametrize("d", [1, 2, 24, 78])
def test_all_kinds_of_points(d):
    random = np.random.default_rng(d)
    normal = random.normal(size=(400, d))
    sphere = normal / np.linalg.norm(normal, axis=1)[:, None]
    kinds = {
        "normal": normal,
        "few": normal[: max(1, d // 2)],
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


def test_equal_points_and_one_point_have_radius_zero():
    for points in (np.full((50, 3), 0.1), [[0.1, 0.2]]):
        ball = smallest_ball(points)
        assert ball.radius == 0
        assert ball.center.tolist() == list(points[0])
        assert ball.weights.tolist() == [1]


def test_moving_scaling_turning_and_shuffling_change_nothing_else():
    random = np.random.default_rng(0)
    points = random.normal(size=(500, 24))
    ball = smallest_ball(points)
    turn = np.linalg.qr(random.normal(size=(24, 24)))[0]
    order = random.permutation(500)
    moved = smallest_ball((3e-5 * points @ turn + 7.0)[order])
    assert moved.radius == pytest.approx(3e-5 * ball.radius, rel=1e-9)  # 7 costs some digits
    assert np.allclose(moved.center, 3e-5 * ball.center @ turn + 7, rtol=0, atol=1e-12)
    assert sorted(order[moved.support]) == ball.support.tolist()


def test_it_agrees_with_miniball_in_24_dimensions():
    miniball = pytest.importorskip("miniball", reason="no wheel for this machine")
    for seed in range(3):
        points = np.random.default_rng(seed).normal(size=(3000, 24))
        other = miniball.Miniball(points)
        ball = smallest_ball(points)
        assert ball.radius == pytest.approx(np.sqrt(other.squared_radius()), rel=1e-12)
        assert ball.center == pytest.approx(np.array(other.center()), rel=1e-9, abs=1e-9)


def test_a_growing_set_continues_from_its_last_support():
    points = np.random.default_rng(0).normal(size=(20_000, 24)).cumsum(0)
    start, radii = None, []
    for n in (2_000, 6_000, 20_000):
        ball = smallest_ball(points[:n], start=start)
        alone = smallest_ball(points[:n])
        assert ball.radius == pytest.approx(alone.radius, rel=1e-12)
        assert ball.support.tolist() == alone.support.tolist()
        start, radii = ball.support, [*radii, ball.radius]
    assert radii == sorted(radii)


def test_the_support_as_a_start_saves_steps():
    points = np.random.default_rng(0).normal(size=(5_000, 24))
    ball = smallest_ball(points)
    few = len(ball.support)
    again = smallest_ball(points, start=ball.support, max_steps=few)
    assert again.radius == pytest.approx(ball.radius, rel=1e-12)
    with pytest.raises(NotConvergedError):
        smallest_ball(points, max_steps=few)


def test_a_large_set_ends():
    """The caps of the issue, 1.5 s and 4 s, are measured by benchmarks/coverage.py."""
    points = np.random.default_rng(0).normal(size=(100_000, 24))
    certify(points, smallest_ball(points))


def test_the_cap_raises_with_bounds_that_hold_the_radius():
    points = np.random.default_rng(0).normal(size=(1000, 24))
    radius = smallest_ball(points).radius
    with pytest.raises(NotConvergedError, match="in 5 steps: its radius is between") as error:
        smallest_ball(points, max_steps=5)
    low, high = map(float, str(error.value).split("between ")[1].split(" and "))
    assert low < radius < high


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.zeros((0, 3)), {}, "shape"),
        (np.zeros(3), {}, "shape"),
        ([[0.0, np.nan]], {}, "first in row 0"),
        ([[0.0], [np.inf]], {}, "first in row 1"),
        ([[0.0], [1.0]], {"start": [2]}, "start must be rows from 0 to 1"),
        ([[0.0], [1.0]], {"start": [0.5]}, "start must be rows from 0 to 1"),
        ([[0.0], [1.0]], {"start": [True]}, "start must be rows from 0 to 1"),
        ([[0.0], [1.0]], {"start": []}, "start must be rows from 0 to 1"),
        ([[0.0], [1.0]], {"max_steps": 1.5}, "max_steps must be an integer"),
        ([[1e308], [-1e308]], {}, "points must be less than 1.8e308 apart, got 1e"),
        ([[1j]], {}, "points must hold real numbers"),
        (np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), {}, "points must have no masked values"),
    ],
)
def test_bad_points_are_refused(points, options, message):
    with pytest.raises(ValueError, match=message):
        smallest_ball(points, **options)
