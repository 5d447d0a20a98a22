import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from belib import knn
from belib.knn import knn_distances


def by_hand(points, k):
    """By `math.dist`, which neither over- nor underflows."""
    rows = np.asarray(points, dtype=float).tolist()
    apart = [
        sorted(math.dist(a, b) for j, b in enumerate(rows) if j != i) for i, a in enumerate(rows)
    ]
    return np.array(apart)[:, :k]


def test_a_line_by_hand():
    x = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    for points in (x, x.numpy()):
        with_self = knn_distances(points, k=2, exclude_self=False)
        assert with_self.tolist() == [[0, 1], [0, 1], [0, 2], [0, 4]]
    x = np.array([[0.0, 0.0], [1.0, 3.0], [2.5, 0.5]])
    square = knn_distances(x, k=2, metric="chebyshev")
    assert square.tolist() == [[2.5, 3.0], [2.5, 3.0], [2.5, 2.5]]


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
POINTS = arrays.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(2, 12), st.sampled_from([1, 2, 9, 24])),
    elements=st.one_of(NUMBERS, st.sampled_from([0.0, 1.0, 1e3, 1e-3, 1e8, 1e-30, -1e30])),
)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(points=POINTS, k=st.integers(1, 5), as_tensor=st.booleans())
def test_distances_are_right_or_refused(points, k, as_tensor):
    x, k = torch.tensor(points) if as_tensor else points, min(k, len(points) - 1)
    with np.errstate(over="ignore"):
        expected = by_hand(points, k).astype(points.dtype if as_tensor else np.float64)
    if not np.isfinite(expected).all():
        with pytest.raises(ValueError, match="points must be finite"):
            knn_distances(x, k=k)
        return
    distances = np.asarray(knn_distances(x, k=k))
    np.testing.assert_array_equal(distances == 0, expected == 0)
    rtol = 1e-4 if as_tensor and points.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(distances, expected, rtol=rtol, atol=1e-44)


def samples(kind, d, n):
    random = np.random.default_rng(3)
    x = random.normal(size=(n, d))
    if kind == "lattice":  # nearly all distances tie
        return random.integers(0, 3, size=(n, d)).astype(float)
    if kind == "tight clusters":  # float32 products see each cluster as one point
        return np.repeat(x[:6], n // 6, axis=0) + 1e-7 * x
    if kind == "one tight cluster":  # of 8 points, whose order is lost in a product
        return np.append(x, x[-1:] + 1e-5 * x[:7], axis=0)
    if kind == "two scales":
        return 0.1 * x + 1000 * (np.arange(n) % 2)[:, None]
    if kind == "duplicates and one far":
        return np.append(np.repeat(x[: n // 2], 2, axis=0), np.full((1, d), 1e8), axis=0)
    return {"normal": x, "huge": 1e60 * x, "far from the origin": 1e6 + 1e-3 * x}[kind]


KINDS = ("normal", "lattice", "tight clusters", "one tight cluster", "two scales", "huge")
KINDS += ("duplicates and one far",)


@pytest.mark.parametrize("kind", [*KINDS, "far from the origin"])
@pytest.mark.parametrize("d", [1, 3, 24, 512])
def test_no_search_changes_the_answer(kind, d, monkeypatch):
    x = samples(kind, d, n=90 if d == 512 else 300)
    expected = by_hand(x, 5)
    for dimensions in (0, 99):  # by products, and by a tree
        monkeypatch.setattr(knn, "TREE_DIMENSIONS", dimensions)
        np.testing.assert_allclose(knn_distances(x, k=5), expected, rtol=1e-12)
    if kind == "huge":
        return
    single = torch.tensor(x, dtype=torch.float32)
    expected = by_hand(single, 5)
    for gpu in (False, True):  # a GPU measures all pairs again, a CPU only the close ones
        monkeypatch.setattr(knn, "_on_gpu", lambda x, gpu=gpu: gpu)
        together = knn_distances(torch.stack([single, single + 1]), k=5)[0]
        for distances in (together, knn_distances(single, k=5)):
            np.testing.assert_allclose(distances, expected, rtol=1e-4)
            assert ((distances == 0).numpy() == (expected == 0)).all()
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(knn_distances(single, k=5), distances)


def test_gradients_reach_the_points_and_are_finite_at_duplicates():
    x = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: knn_distances(y, k=3), x)
    for k in (1, 3):  # with the point itself, which is 0 apart
        assert torch.autograd.gradcheck(lambda y, k=k: knn_distances(y, k=k, exclude_self=False), x)
    assert knn_distances(0 * x / 0, k=1, exclude_self=False).isnan().all()
    with torch.no_grad():
        x[3] = x[4]
    knn_distances(x, k=3).mean().backward()
    assert x.grad.isfinite().all()
    assert torch.equal(knn_distances(x, k=3).detach(), knn_distances(x.detach(), k=3))


FEW = torch.zeros(12, 2)


@pytest.mark.parametrize(
    ("x", "options", "match"),
    [
        (np.zeros(5), {}, "x must"),
        ([[0.0], [np.nan]], {}, "x must"),
        (torch.zeros(2, 2, 3, 4), {}, "x must"),
        (torch.zeros(5, 2, dtype=torch.int64), {}, "x must"),
        (torch.full((12, 2), torch.nan), {}, "points must be finite"),
        (6e4 * torch.eye(12).half(), {}, "must fit torch.float16, got points up to 6e"),
        (FEW, {"k": 12}, "k must be between 1 and 11, got 12"),
        (FEW.numpy(), {"k": 12}, "k must be between 1 and 11, got 12"),
        (FEW, {"metric": "chebyshev"}, "metric must be euclidean"),
        (FEW.numpy(), {"metric": "cosine"}, "got 'cosine'"),
        *((scale * np.eye(9, d), {}, "1e-150 to") for scale in (1e-160, 1e160) for d in (1, 9)),
    ],
)
def test_refusals(x, options, match):
    with pytest.raises(ValueError, match=match):
        knn_distances(x, **{"k": 1, **options})
