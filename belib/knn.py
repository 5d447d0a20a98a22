"""Nearest-neighbour distances: the only neighbour search of the package."""

import torch
from torch import Tensor

# A squared distance from one matrix product carries a rounding error of about eps times the squared
# norms. Pairs closer than this share of them are computed again from the difference of the points.
_REFINE_BELOW = 1e-2


def knn_distances(x: Tensor, *, k: int, exclude_self: bool = True) -> Tensor:
    """Euclidean distances from each point to its k nearest among the points of its own set.

    Args:
        x: points, (n, d), or (M, n, d) for M members that are searched separately.
        k: neighbours, 1 <= k <= n (< n where the point itself is excluded).
        exclude_self: False counts the point itself as its first neighbour, at distance 0.0, as
            URLB's APT does.

    Returns:
        Ascending distances, (n, k) or (M, n, k). Duplicates are at exactly 0.0. Memory is O(n^2)
        a member: the (n, n, d) differences are never formed.

    Raises ValueError where k does not fit n, or a coordinate is not finite.
    """
    points = x if x.dim() == 3 else x[None]
    n = points.shape[-2]
    if not 1 <= k <= n - exclude_self:
        raise ValueError(f"k must be between 1 and {n - exclude_self} for {n} points, got {k}")
    squared, norms = _squared_distances(points)
    own = torch.arange(n, device=x.device)
    # The own index is masked, never recognised by its distance, which need not come out smallest.
    squared[:, own, own] = torch.inf if exclude_self else -1.0
    nearest, index = squared.topk(k, largest=False)
    scale = norms[..., None] + norms.gather(1, index.flatten(1)).view_as(nearest)
    return _refined(points, nearest, index, scale).reshape(*x.shape[:-1], k)


def _squared_distances(points: Tensor) -> tuple[Tensor, Tensor]:
    """(M, n, n) squared distances by one product, and the (M, n) squared norms after centring."""
    centred = points - points.mean(1, keepdim=True)
    norms = centred.square().sum(-1)
    if not torch.isfinite(norms).all():
        raise ValueError("points must be finite, got NaN or inf (or coordinates that overflow)")
    both = norms[:, :, None] + norms[:, None, :]
    return torch.baddbmm(both, centred, centred.mT, alpha=-2.0), norms


def _refined(points: Tensor, squared: Tensor, index: Tensor, scale: Tensor) -> Tensor:
    """Distances in order, with the close pairs recomputed from their differences."""
    distance = squared.clamp_min(0).sqrt()
    member, row, column = (squared <= _REFINE_BELOW * scale).nonzero(as_tuple=True)
    neighbour = index[member, row, column]
    difference = points[member, row] - points[member, neighbour]
    distance[member, row, column] = difference.square().sum(-1).sqrt()
    return distance.sort(-1).values
