"""Nearest-neighbour distances: the only neighbour search of the package.

Arrays are searched in float64: by a k-d tree up to `TREE_DIMENSIONS` dimensions, and above by
scikit-learn's matrix products, because trees then visit nearly every point. Tensors are searched by
one batched matrix product. Near distances are computed from differences. Where rounding errors
leave a point's neighbours undecided, float64 differences to all points decide.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from belib.arrays import is_tensor, real_array, whole_number

if TYPE_CHECKING:  # torch takes seconds to import, and arrays do not need it
    from torch import Tensor

TREE_DIMENSIONS = 8  # the tree is faster up to here: benchmarks/estimators.py
_SPARE = 4  # candidates beyond the k nearest, so that rounding rarely leaves them undecided
_RESOLVED = 1e-150  # squares of smaller distances underflow float64

Points = TypeVar("Points", NDArray, "Tensor")


def knn_distances(
    x: Points, *, k: int, exclude_self: bool = True, metric: str = "euclidean"
) -> Points:
    """Return ascending distances from each point to its k nearest, (n, k) or (M, n, k).

    Args:
        x: points: an array (n, d), or a tensor (n, d) or (M, n, d). The M members are searched
            separately. Tensors' distances are differentiable; the gradient of a distance 0 is 0.
        k: number of neighbours, 1 <= k <= n, or k < n if the point itself is excluded.
        exclude_self: False counts the point itself as its first neighbour, as URLB's APT does.
        metric: "euclidean", or for arrays "chebyshev" (always by the tree).

    The relative error is at most 1e-4 for float32 tensors, at distances above 1e-18, and 1e-12 for
    arrays; duplicates are 0.0 apart. Memory is O(n (k + d)), and O(n^2) a member for tensors.

    Raise ValueError if k does not fit n, if points are not finite real numbers, and if distances or
    their squares over- or underflow. Nothing is checked while a CUDA graph is captured: then
    distances are NaN if coordinates are not finite, and the nearest points are those of a float32
    product, which are right for distances above 1e-3 of the points' spread.

    >>> knn_distances(np.array([[0.0], [1.0], [3.0]]), k=2)
    array([[1., 3.],
           [1., 2.],
           [2., 3.]])
    """
    tensor = is_tensor(x)
    if metric != "euclidean" and (tensor or metric != "chebyshev"):
        raise ValueError(f"metric must be euclidean, or for arrays chebyshev, got {metric!r}")
    if tensor and not (x.is_floating_point() and x.ndim in (2, 3)):
        raise ValueError(f"x must be floats (n, d) or (M, n, d), got {x.dtype} {tuple(x.shape)}")
    points = x if tensor else real_array("x", x, ndim=2)
    k = whole_number("k", k, least=1, most=points.shape[-2] - exclude_self)
    search: Any = _search_tensor if tensor else partial(_search_array, metric=metric)
    return search(points, k, exclude_self)


def _search_array(points: NDArray, k: int, exclude_self: bool, metric: str) -> NDArray[np.float64]:
    """Return distances (n, k)."""
    k += exclude_self
    if metric == "euclidean" and points.shape[1] > TREE_DIMENSIONS:
        distances, index = _search_brute(points, k)
    else:
        tree, torch = cKDTree(points), sys.modules.get("torch")
        order, workers = tree.indices, torch.get_num_threads() if torch else -1
        p = 2 if metric == "euclidean" else np.inf
        # neighbours one after the other, which is twice as fast
        result = tree.query(points[order], k=range(1, k + 1), p=p, workers=workers)
        distances, index = (part[np.argsort(order)] for part in result)
    distances = _resolved(points, np.arange(len(points)), distances, index)
    return distances[:, int(exclude_self) :]


@np.errstate(over="ignore", invalid="ignore")  # `_resolved` refuses
def _search_brute(points: NDArray, k: int) -> tuple[NDArray, NDArray]:
    """Return (n, k) Euclidean distances (from differences) and indices (candidates by products)."""
    from sklearn.neighbors import NearestNeighbors

    (n, d), count = points.shape, min(len(points), k + _SPARE)
    centred = points - points.mean(0)
    search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(centred)
    approximate, index = search.kneighbors(centred)
    # distances of the candidates from their differences
    squared = np.stack([np.square(points - points[i]).sum(1) for i in index.T], axis=1)
    order = np.argsort(squared, axis=1)[:, :k]
    distances = np.sqrt(np.take_along_axis(squared, order, 1))
    index = np.take_along_axis(index, order, 1)
    # all other points are further away than the last candidate, up to rounding errors
    norms = np.square(centred).sum(1)
    rounding = 4 * (d + 8) * np.finfo(float).eps * (norms + norms.max())
    bound = np.square(approximate[:, -1]) - rounding
    sure = (bound >= (1 - 1e-12) * np.square(distances[:, -1])) | (count == n)
    for rows in np.split(np.flatnonzero(~sure), range(64, (~sure).sum(), 64)):
        distances[rows], index[rows] = _by_differences(points, rows, k)
    return distances, index


def _by_differences(points: NDArray, rows: NDArray, k: int) -> tuple[NDArray, NDArray]:
    """Return (rows, k) distances and indices by differences; the point itself comes first."""
    distances = cdist(points[rows], points)
    distances[np.arange(len(rows)), rows] = -1.0
    index = np.argpartition(distances, k - 1, axis=1)[:, :k]
    index = np.take_along_axis(index, np.take_along_axis(distances, index, 1).argsort(1), 1)
    return np.take_along_axis(distances, index, 1).clip(0.0), index


def _resolved(
    points: NDArray, rows: NDArray, distances: NDArray, index: NDArray
) -> NDArray[np.float64]:
    """Return distances (rows, k). Raise ValueError if they or their squares may not fit floats."""
    row, column = np.nonzero(distances < _RESOLVED)
    unequal = (points[rows[row]] != points[index[row, column]]).any()
    most = min(1 / _RESOLVED, float(np.finfo(points.dtype).max))
    if unequal or not (distances <= most).all():  # NaN, too
        apart = f"finite, and equal or {_RESOLVED:g} to {most:.3g} apart"
        raise ValueError(f"points must be {apart}, got some up to {np.abs(points).max():.3g}")
    return distances


def _search_tensor(x: Tensor, k: int, exclude_self: bool) -> Tensor:
    """Return (n, k) or (M, n, k) distances in x's precision, computed at least in float32."""
    from torch.nn.functional import pad

    points = x if x.dim() == 3 else x[None]
    points = points.float() if x.element_size() < 4 else points
    others = k - (not exclude_self)
    if others == 0:
        return (0 * x).sum(-1, keepdim=True)  # NaN if x is not finite
    distances, index = _nearest(points.detach(), others)
    if x.requires_grad:
        differentiable = _norms(points, index)
        distances = distances + (differentiable - differentiable.detach())
    distances = pad(distances, (k - others, 0)).to(x.dtype)  # the point itself comes first
    if not _captured(x) and not distances.isfinite().all():
        apart = "distances and, for gradients, their squares"
        raise ValueError(f"{apart} must fit {x.dtype}, got points up to {x.abs().max():.3g}")
    return distances.reshape(*x.shape[:-1], k)


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _captured(x: Tensor) -> bool:
    """Return whether a CUDA graph is being captured, during which no value may be read."""
    import torch

    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _nearest(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return ascending distances (M, n, k) from points (M, n, d) to others, and their indices."""
    squared, lower, scale = _squared_distances(points)
    # candidates: the smallest lower bounds of squared distances
    bound, index = lower.topk(min(k + _SPARE, len(lower[0]) - 1), largest=False)
    squared, scale = squared.gather(-1, index), scale.gather(-1, index)
    # k candidates are within `reach`, an upper bound; other points are beyond the last lower bound
    reach = (2 * squared - bound).sort(-1).values[..., k - 1 : k]
    all_others = index.shape[-1] == len(lower[0]) - 1
    sure = reach.isfinite() & ((reach <= bound[..., -1:]) | all_others)
    # distances of candidates from differences; on a CPU only of those that are close
    if _on_gpu(points):
        distances = _norms(points, index)
    else:
        distances = squared.clamp_min(0).sqrt()
        close = (squared <= 1e-2 * scale) & (bound <= reach)
        member, row, _ = close.nonzero(as_tuple=True)
        difference = points[member, row] - points[member, index[close]]
        largest = difference.abs().amax(-1, keepdim=True)  # squares may underflow
        unit = (difference / largest).nan_to_num()  # 0 / 0
        distances[close] = unit.square().sum(-1).sqrt() * largest[..., 0]
    distances, order = distances.sort(-1)
    distances, index = distances[..., :k], index.gather(-1, order[..., :k])
    if not _captured(points) and not sure.all():
        _search_undecided(points, ~sure[..., 0], distances, index)
    return distances, index


def _squared_distances(points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return squared distances, their lower bounds, and sums of squared norms, all (M, n, n).

    The bounds allow for the product's rounding errors (8 standard deviations of a random walk) and
    for underflow.
    """
    import torch

    from belib.machine import products

    d, kind = points.shape[-1], torch.finfo(points.dtype)
    slack = 2 * kind.eps * (math.sqrt(d) + 4)
    centred = points - points.mean(1, keepdim=True)
    norms = centred.square().sum(-1)
    scale = norms[:, :, None] + norms[:, None, :]
    with products("float32", points.device):  # not in tf32
        squared = torch.baddbmm(scale, centred, centred.mT, alpha=-2.0)
    lower = torch.add(squared, scale.add_(d * kind.tiny / slack), alpha=-slack)
    lower.diagonal(dim1=1, dim2=2).fill_(torch.inf)  # the point itself is no candidate
    return squared, lower, scale


def _search_undecided(points: Tensor, unsure: Tensor, distances: Tensor, index: Tensor) -> None:
    """Replace the rows `unsure` (M, n) of distances and indices (M, n, k), by differences."""
    for member, rows in enumerate(unsure):
        array, chosen = points[member].cpu().numpy(), rows.nonzero()[:, 0].cpu().numpy()
        exact, nearest = _by_differences(array, chosen, index.shape[-1] + 1)
        exact = _resolved(array, chosen, exact, nearest)
        distances[member, rows] = distances.new_tensor(exact[:, 1:])
        index[member, rows] = index.new_tensor(nearest[:, 1:])


def _norms(points: Tensor, index: Tensor) -> Tensor:
    """Return distances (M, n, k) from differences; the gradient of a distance 0 is 0."""
    import torch

    columns = [column[..., None].expand_as(points) for column in index.unbind(-1)]
    return torch.stack([(points - points.gather(1, c)).norm(dim=-1) for c in columns], -1)
