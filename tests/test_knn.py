import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from belib import knn
from belib.knn import knn_distances


def brute_force(x, k, exclude_self=True):
    """Float64 reference by differences."""
    x = x.double()
    distance = (x[:, None] - x[None]).norm(dim=-1)
    if exclude_self:
        distance.fill_diagonal_(torch.inf)
    return distance.sort(-1).values[:, :k]


def test_hand_computed_line():
    x = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    for points in (x, x.numpy()):
        assert knn_distances(points, k=1).squeeze(-1).tolist() == [1, 1, 2, 4]
        with_self = knn_distances(points, k=2, exclude_self=False)
        assert with_self.tolist() == [[0, 1], [0, 1], [0, 2], [0, 4]]


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("exclude_self", [True, False])
def test_float32_agrees_with_float64_at_512_dimensions(offset, exclude_self):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 512, generator=generator) + offset
    x[:20] = x[20:40] + 1e-3 * torch.randn(20, 512, generator=generator)  # close pairs
    reference = brute_force(x, 12, exclude_self)
    found = knn_distances(x, k=12, exclude_self=exclude_self).double()
    torch.testing.assert_close(found, reference, rtol=1e-4, atol=0)
    array = knn_distances(x.numpy(), k=12, exclude_self=exclude_self)
    np.testing.assert_allclose(array, reference, rtol=1e-12)


def test_duplicates_are_at_exactly_zero():
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(1)) * 30 + 7
    x[32:] = x[:32]
    for points in (x, x.numpy()):
        assert (knn_distances(points, k=1) == 0).all()
    assert (knn_distances(torch.full((16, 5), 0.3), k=3) == 0).all()
    assert (knn_distances(np.full((16, 5), 0.3), k=3) == 0).all()


def test_members_of_a_batch_equal_single_searches():
    x = torch.randn(3, 128, 24, generator=torch.Generator().manual_seed(2))
    together = knn_distances(x, k=12)
    for member in range(3):
        torch.testing.assert_close(together[member], knn_distances(x[member], k=12))


def samples(kind, d):
    random = np.random.default_rng(3)
    if kind == "normal":
        return random.normal(size=(700, d))
    if kind == "lattice":  # nearly all distances tie
        return random.integers(0, 3, size=(700, d)).astype(float)
    if kind == "tight clusters":  # float32 products see each cluster as one point
        centres = random.normal(size=(7, d))
        return np.repeat(centres, 100, axis=0) + 1e-7 * random.normal(size=(700, d))
    if kind == "huge":
        return 1e60 * random.normal(size=(700, d))
    return 1e6 + 1e-3 * random.normal(size=(700, d))


@pytest.mark.parametrize(
    "kind", ["normal", "lattice", "tight clusters", "huge", "far from the origin"]
)
@pytest.mark.parametrize("d", [1, 3, 24])
def test_the_choice_of_search_never_changes_the_answer(kind, d, monkeypatch):
    x = samples(kind, d)
    squared = np.stack([np.square(x - point).sum(1) for point in x])
    reference = np.sqrt(np.sort(squared, axis=1)[:, :13])
    for dimensions in (0, 99):
        monkeypatch.setattr(knn, "TREE_DIMENSIONS", dimensions)
        distances = knn_distances(x, k=13, exclude_self=False)
        np.testing.assert_allclose(distances, reference, rtol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (255, 254), (257, 5), (5000, 3)])
def test_edge_sizes(n, k):
    x = np.random.default_rng(4).normal(size=(n, 10))
    (by_products, _), (by_tree, _) = knn._search_brute(x, k), knn._search_tree(x, k, 2.0)
    np.testing.assert_allclose(by_products, by_tree, rtol=1e-12)


def test_chebyshev_by_hand():
    x = np.array([[0.0, 0.0], [1.0, 3.0], [2.5, 0.5]])
    found = knn_distances(x, k=2, metric="chebyshev")
    assert found.tolist() == [[2.5, 3.0], [2.5, 3.0], [2.5, 2.5]]


def test_independence_of_the_number_of_threads():
    x = samples("normal", 24)
    with threadpool_limits(1):
        one = knn_distances(x, k=5)
    with threadpool_limits(2):
        np.testing.assert_allclose(knn_distances(x, k=5), one, rtol=1e-14)


def test_messages():
    x = torch.zeros(12, 2)
    for points in (x, x.numpy()):
        with pytest.raises(ValueError, match="k must be between 1 and 11 for 12 points, got 12"):
            knn_distances(points, k=12)
    x[3, 1] = torch.nan
    for points in (x, x.numpy()):
        with pytest.raises(ValueError, match="finite"):
            knn_distances(points, k=2)
    with pytest.raises(ValueError, match="metric must be euclidean for tensors"):
        knn_distances(x, k=2, metric="chebyshev")
    with pytest.raises(ValueError, match="metric must be one of euclidean, chebyshev"):
        knn_distances(x.numpy(), k=2, metric="cosine")


def test_tensors_are_searched_in_full_precision_within_bfloat16_code():
    x = torch.randn(2, 100, 32, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        found = knn_distances(x, k=5)
    assert torch.equal(found, knn_distances(x, k=5))


@pytest.mark.parametrize("exclude_self", [True, False])
def test_the_search_of_a_gpu_gives_the_same(exclude_self, monkeypatch):
    """It measures all pairs that the product selects again; on a CPU, only the close ones."""
    x = torch.randn(2, 200, 48, generator=torch.Generator().manual_seed(0))
    x[:, :20] = x[:, 20:40] + 1e-4
    x[:, 40] = x[:, 41]
    expected = knn_distances(x, k=5, exclude_self=exclude_self)
    monkeypatch.setattr(knn, "_on_gpu", lambda x: True)
    found = knn_distances(x, k=5, exclude_self=exclude_self)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    assert (found[:, 40, 0] == 0).all()
