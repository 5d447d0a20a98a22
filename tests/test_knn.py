import pytest
import torch

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
    assert knn_distances(x, k=1).squeeze(-1).tolist() == [1, 1, 2, 4]
    with_self = knn_distances(x, k=2, exclude_self=False)
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


def test_duplicates_are_at_exactly_zero():
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(1)) * 30 + 7
    x[32:] = x[:32]
    assert (knn_distances(x, k=1) == 0).all()
    assert (knn_distances(torch.full((16, 5), 0.3), k=3) == 0).all()


def test_members_of_a_batch_equal_single_searches():
    x = torch.randn(3, 128, 24, generator=torch.Generator().manual_seed(2))
    together = knn_distances(x, k=12)
    for member in range(3):
        torch.testing.assert_close(together[member], knn_distances(x[member], k=12))


def test_messages():
    x = torch.zeros(12, 2)
    with pytest.raises(ValueError, match="k must be between 1 and 11 for 12 points, got 12"):
        knn_distances(x, k=12)
    x[3, 1] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        knn_distances(x, k=2)
