"""Nearest-neighbour distances: the only neighbour search of the package.

Arrays are searched in float64: by a k-d tree up to `TREE_DIMENSIONS` dimensions, and above by
scikit-learn's matrix products, because trees then visit nearly every point. Tensors are searched by
one batched matrix product. Products only select candidates. Where their rounding errors leave the
nearest points undecided, distances are computed from differences.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_info

from belib.arrays import is_tensor, real_array, whole_number

if TYPE_CHECKING:  # torch takes seconds to import, and arrays do not need it
    from torch import Tensor

TREE_DIMENSIONS = 8  # the tree is faster up to here: benchmarks/estimators.py

METRICS = {"euclidean": 2.0, "chebyshev": np.inf}

_REFINE_BELOW = 1e-2  # of the squared norms; smaller squared distances come from differences
_RESOLVED = 1e-150  # of the largest coordinate; squares of smaller distances underflow float64


@overload
def knn_distances(
    x: Tensor, *, k: int, exclude_self: bool = True, metric: str = "euclidean"
) -> Tensor: ...
@overload
def knn_distances(
    x: NDArray, *, k: int, exclude_self: bool = True, metric: str = "euclidean"
) -> NDArray[np.float64]: ...
def knn_distances(
    x: NDArray | Tensor, *, k: int, exclude_self: bool = True, metric: str = "euclidean"
) -> NDArray[np.float64] | Tensor:
    """Return ascending distances from each point to its k nearest, (n, k) or (M, n, k).

    Args:
        x: points: an array (n, d), or a tensor (n, d) or (M, n, d). The M members are searched
            separately. Tensors' distances are differentiable; the gradient of a distance 0 is 0.
        k: number of neighbours, 1 <= k <= n, or k < n if the point itself is excluded.
        exclude_self: False counts the point itself as its first neighbour, as URLB's APT does.
        metric: "euclidean", or for arrays "chebyshev" (always by the tree).

    The relative error is at most 1e-4 for float32 tensors and 1e-12 for arrays; duplicates have the
    distance 0.0 exactly. Memory is O(n (k + d)) for arrays and O(n^2) a member for tensors.

    Raise ValueError if k does not fit n, if points are not finite real numbers, and if distances
    overflow or their squares underflow. Nothing is checked while a CUDA graph is captured: then
    distances are NaN if coordinates are not finite, and the nearest points are those of a float32
    product, which are right for distances above 1e-3 of the points' spread.

    >>> knn_distances(np.array([[0.0], [1.0], [3.0]]), k=2)
    array([[1., 3.],
           [1., 2.],
           [2., 3.]])
    """
    x = _points(x, metric)
    n, k = x.shape[-2], whole_number("k", k, least=-math.inf)
    if not 1 <= k <= n - exclude_self:
        raise ValueError(f"k must be between 1 and {n - exclude_self} for {n} points, got {k}")
    if is_tensor(x):
        return _search_tensor(x, k, exclude_self)
    return _search_array(np.asarray(x), k + exclude_self, metric)[:, int(exclude_self) :]


def _points(x: NDArray | Tensor, metric: str) -> NDArray | Tensor:
    """Return points as an array of floats or a tensor. Raise ValueError for anything else."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if not is_tensor(x):
        x = real_array("x", x, ndim=2)
    elif metric != "euclidean":
        raise ValueError(f"metric must be euclidean for tensors, got {metric!r}")
    elif not x.is_floating_point():
        raise ValueError(f"x must be of a floating-point type, got {x.dtype}")
    if x.ndim not in (2, 3) or x.shape[-1] == 0:
        raise ValueError(f"x must have shape (n, d), tensors also (M, n, d), got {tuple(x.shape)}")
    return x


def _search_array(points: NDArray, k: int, metric: str) -> NDArray[np.float64]:
    """Return (n, k) distances; the first is 0, that of the point to itself."""
    scaled, exponent = _scaled(points)
    if metric == "euclidean" and points.shape[1] > TREE_DIMENSIONS:
        distances, index = _search_brute(scaled, k)
    else:
        distances, index = _search_tree(scaled, k, METRICS[metric])
    return _restored(scaled, exponent, np.arange(len(points)), distances, index)


def _scaled(points: NDArray) -> tuple[NDArray, int]:
    """Return points / 2^exponent, below 1 so that squares do not overflow, and the exponent."""
    exponent = int(np.frexp(np.abs(points).max())[1])
    return np.ldexp(points, -exponent), exponent


def _restored(
    points: NDArray, exponent: int, rows: NDArray, distances: NDArray, index: NDArray
) -> NDArray[np.float64]:
    """Return distances (rows, k) in the original units. Raise ValueError where floats overflow."""
    row, column = np.nonzero(distances < _RESOLVED)
    if (points[rows[row]] != points[index[row, column]]).any():
        raise ValueError(
            f"points must be equal or further apart than {_RESOLVED} of the largest coordinate, "
            "got some that are not"
        )
    with np.errstate(over="ignore"):
        distances = np.ldexp(distances, exponent)
    if not np.isfinite(distances).all():
        largest = float(np.ldexp(np.abs(points).max(), exponent))
        raise ValueError(f"distances must be finite, got points up to {largest:.3g}")
    return distances


def _search_tree(points: NDArray, k: int, p: float) -> tuple[NDArray, NDArray]:
    """Return (n, k) distances and indices by a k-d tree."""
    order = cKDTree(points, balanced_tree=False, compact_nodes=False).indices  # 3 times faster
    ordered = points[order]
    shape, tree = (len(points), k), cKDTree(ordered)
    distances, index = np.empty(shape), np.empty(shape, dtype=int)
    result = tree.query(ordered, k=k, p=p, workers=_threads())
    distances[order], index[order] = result[0].reshape(shape), order[result[1]].reshape(shape)
    return distances, index


def _threads() -> int:
    """Return the number of threads of torch if it is imported, else that of BLAS and OpenMP."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.get_num_threads()
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def _search_brute(points: NDArray, k: int) -> tuple[NDArray, NDArray]:
    """Return (n, k) Euclidean distances (from differences) and indices (candidates by products)."""
    from sklearn.neighbors import NearestNeighbors

    (n, d), count = points.shape, min(len(points), k + 4)
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
    unsure = (bound < (1 - 1e-12) * np.square(distances[:, -1])) & (count < n)
    for rows in np.split(np.flatnonzero(unsure), range(64, unsure.sum(), 64)):
        distances[rows], index[rows] = _by_differences(points, rows, k)
    return distances, index


def _by_differences(points: NDArray, rows: NDArray, k: int) -> tuple[NDArray, NDArray]:
    """Return (rows, k) distances and indices by differences; the point itself comes first."""
    distances = cdist(points[rows], points)
    distances[np.arange(len(rows)), rows] = -1.0
    index = np.argpartition(distances, k - 1, axis=1)[:, :k]
    index = np.take_along_axis(index, np.take_along_axis(distances, index, 1).argsort(1), 1)
    return np.take_along_axis(distances, index, 1).clip(0.0), index


def _search_tensor(x: Tensor, k: int, exclude_self: bool) -> Tensor:
    """Return (n, k) or (M, n, k) distances in x's precision, computed at least in float32."""
    from torch.nn import functional

    points = x if x.dim() == 3 else x[None]
    points = points.float() if x.element_size() < 4 else points
    others = k - (not exclude_self)
    if others == 0:
        return x.new_zeros(*x.shape[:-1], 1)
    distances, index = _nearest(points.detach(), others)
    if x.requires_grad:
        differentiable = _norms(points, index)
        distances = distances + (differentiable - differentiable.detach())
    distances = functional.pad(distances, (k - others, 0))  # the point itself comes first
    return distances.to(x.dtype).reshape(*x.shape[:-1], k)


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _captured(x: Tensor) -> bool:
    """Return whether a CUDA graph is being captured, during which no value may be read."""
    import torch

    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _nearest(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return ascending distances (M, n, k) from points (M, n, d) to others, and their indices."""
    n = points.shape[1]
    squared, lower, norms = _squared_distances(points)
    # candidates: the smallest lower bounds of squared distances
    bound, index = lower.topk(min(2 * k, n - 1), largest=False)
    scale = norms[..., None] + norms.gather(1, index.flatten(1)).view_as(bound)
    squared = squared.gather(-1, index)
    # k candidates are within `reach`, an upper bound; other points are beyond the last lower bound
    reach = (2 * squared - bound).sort(-1).values[..., k - 1 : k]
    sure = reach.isfinite() & ((reach <= bound[..., -1:]) | (index.shape[-1] == n - 1))
    # distances of the k nearest from differences; on a CPU only of candidates that are close
    if _on_gpu(points):
        index = index.gather(-1, squared.argsort(-1)[..., :k])
        distances = _norms(points, index)
    else:
        close = (squared <= _REFINE_BELOW * scale) & (bound <= reach)
        distances = _refined(points, squared.clamp_min(0), index, close)
    distances, order = distances.sort(-1)
    distances, index = distances[..., :k], index.gather(-1, order[..., :k])
    # rows in which the bounds do not decide which points are the nearest
    if not _captured(points) and not sure.all():
        if not points.isfinite().all():
            raise ValueError("x must be finite, got NaN or inf")
        for member in range(len(points)):
            rows = (~sure[member, :, 0]).nonzero()[:, 0]
            distances[member, rows], index[member, rows] = _undecided(points[member], rows, k)
    return distances, index


def _squared_distances(points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return squared distances (M, n, n), their lower bounds, and squared centred norms (M, n).

    The bounds allow for the product's rounding errors (8 standard deviations of a random walk) and
    for underflow.
    """
    import torch

    from belib.machine import products

    d, kind = points.shape[-1], torch.finfo(points.dtype)
    slack = 2 * kind.eps * (math.sqrt(d) + 4)
    centred = points - points.mean(1, keepdim=True)
    norms = centred.square().sum(-1)
    norm_sums = norms[:, :, None] + norms[:, None, :]
    with products("float32", points.device):  # not in tf32
        squared = torch.baddbmm(norm_sums, centred, centred.mT, alpha=-2.0)
    lower = torch.add(squared, norm_sums.add_(d * kind.tiny / slack), alpha=-slack)
    lower.diagonal(dim1=1, dim2=2).fill_(torch.inf)  # the point itself is no candidate
    return squared, lower, norms


def _refined(points: Tensor, squared: Tensor, index: Tensor, close: Tensor) -> Tensor:
    """Return distances: from differences where `close`, else the square roots of `squared`."""
    import torch

    distances = squared.sqrt()
    member, row, column = close.nonzero(as_tuple=True)
    difference = points[member, row] - points[member, index[member, row, column]]
    largest = difference.abs().amax(-1, keepdim=True)  # squares may underflow
    unit = torch.where(largest > 0, difference / largest, 0.0)
    distances[member, row, column] = unit.square().sum(-1).sqrt() * largest[..., 0]
    return distances


def _norms(points: Tensor, index: Tensor) -> Tensor:
    """Return distances (M, n, k) from differences; the gradient of a distance 0 is 0."""
    import torch

    columns = [column[..., None].expand_as(points) for column in index.unbind(-1)]
    return torch.stack([(points - points.gather(1, c)).norm(dim=-1) for c in columns], -1)


def _undecided(points: Tensor, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return distances (rows, k) to other points, and indices, by differences in float64."""
    scaled, exponent = _scaled(points.double().cpu().numpy())
    chosen = rows.cpu().numpy()
    distances, index = _by_differences(scaled, chosen, k + 1)
    distances = points.new_tensor(_restored(scaled, exponent, chosen, distances, index)[:, 1:])
    if not distances.isfinite().all():
        raise ValueError(f"distances must be finite, got points up to {points.abs().max():.3g}")
    return distances, rows.new_tensor(index[:, 1:])
