"""Nearest-neighbour distances: the only neighbour search of the package.

Arrays are searched in float64, by a k-d tree up to `TREE_DIMENSIONS` dimensions and by matrix
products above, where trees visit nearly every point; tensors by one batched matrix product. All
three are exact: products only select candidates, whose distances come from their differences. They
use torch's number of threads where it is imported, else BLAS's.
"""

from __future__ import annotations

import sys
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:  # torch takes seconds to import, and arrays can do without it
    from torch import Tensor

TREE_DIMENSIONS = 8
"""Dimensions up to which the tree is the faster search; measured by benchmarks/estimators.py."""

_BLAS = ThreadpoolController()

METRICS = {"euclidean": 2.0, "chebyshev": np.inf}
_ROWS, _COLUMNS = 256, 4096  # of a block of products: 4 MB in float32, near the cache's size

# A squared distance from one matrix product carries a rounding error of about eps times the squared
# norms. Pairs closer than this share of them are computed again from the difference of the points.
_REFINE_BELOW = 1e-2


def is_tensor(x: object) -> TypeGuard[Tensor]:
    """Whether x is torch's; torch need not be there, since whoever has a tensor has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


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
    """Distances from each point to its k nearest among the points of its own set.

    Args:
        x: points: an array (n, d), or a tensor (n, d) or (M, n, d) for M members that are searched
            separately.
        k: neighbours, 1 <= k <= n (< n where the point itself is excluded).
        exclude_self: False counts the point itself as its first neighbour, at distance 0.0, as
            URLB's APT does.
        metric: "euclidean", or for arrays "chebyshev" (always by the tree).

    Returns:
        Ascending distances (n, k) or (M, n, k) of x's kind. Duplicates are at exactly 0.0. Memory
        is O(n (k + d)) for arrays, O(n^2) a member for tensors: never the (n, n, d) differences.

    Raises ValueError where k does not fit n, or a coordinate is not finite.

    >>> knn_distances(np.array([[0.0], [1.0], [3.0]]), k=2)
    array([[1., 3.],
           [1., 2.],
           [2., 3.]])
    """
    n = x.shape[-2]
    if not 1 <= k <= n - exclude_self:
        raise ValueError(f"k must be between 1 and {n - exclude_self} for {n} points, got {k}")
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if is_tensor(x):
        if metric != "euclidean":
            raise ValueError(f"metric must be euclidean for tensors, got {metric!r}")
        return _search_tensor(x, k, exclude_self)
    points = np.asarray(x, dtype=np.float64)
    if not np.isfinite(points).all():
        raise ValueError("points must be finite, got NaN or inf")
    by_tree = metric != "euclidean" or points.shape[1] <= TREE_DIMENSIONS
    search = _search_tree if by_tree else _search_products
    # The nearest of all is the point itself, or a duplicate at the same distance 0.
    return search(points, k + exclude_self, METRICS[metric])[:, int(exclude_self) :]


def _search_tree(points: NDArray, k: int, p: float) -> NDArray[np.float64]:
    """(n, k) distances by a k-d tree of the points in its own leaves' order, 3 times faster."""
    order = cKDTree(points, balanced_tree=False, compact_nodes=False).indices
    ordered = points[order]
    distances = np.empty((len(points), k))
    found = cKDTree(ordered).query(ordered, k=k, p=p, workers=_threads())[0]
    distances[order] = found.reshape(len(points), k)
    return distances


def _search_products(points: NDArray, k: int, p: float) -> NDArray[np.float64]:
    """(n, k) Euclidean distances (p = 2) by products of blocks, in a k-d tree's leaves' order.

    The k-th distance within a window of that order bounds the k-th of all. Points that a product
    places within the bound, rounding errors included, are measured again from their differences.
    """
    n, d = points.shape
    order = cKDTree(points, balanced_tree=False, compact_nodes=False).indices
    ordered = points[order]
    x = ordered - points.mean(0)
    x /= np.abs(x).max() or 1.0  # within float32's range
    norms = np.square(x).sum(1)
    # Any product below errs by at most this many eps, whatever the order of its summation.
    rounding = 4 * (d + 8) * norms.max()
    window = max(4 * k, 1024)
    left = np.append(-2 * x, np.ones((n, 1)), axis=1)
    right = np.append(x, norms[:, None], axis=1).T
    left = {kind: left.astype(kind) for kind in (np.float32, np.float64)}
    right = {kind: np.ascontiguousarray(right, dtype=kind) for kind in left}
    distances = np.empty((n, k))

    def search_block(start: int) -> None:
        rows = slice(start, min(n, start + _ROWS))
        near = slice(max(0, min(start - window, n - 2 * window)), rows.stop + window)
        inner = left[np.float64][rows] @ right[np.float64][:, near]
        bound = np.partition(inner, k - 1, axis=1)[:, k - 1]
        closest = np.median(bound + norms[rows])
        kind = np.float32 if closest > rounding * np.finfo(np.float32).eps else np.float64
        bound += 2 * rounding * np.finfo(kind).eps
        row, column = _within(left[kind][rows], right[kind], bound)
        distances[order[rows]] = _closest(ordered, start, row, column, k)

    # A thread a block: BLAS's own threads gain little on blocks, and spin where a core is busy.
    with ThreadPool(_threads()) as pool, _BLAS.limit(limits=1, user_api="blas"):
        pool.map(search_block, range(0, n, _ROWS))
    return distances


def _threads() -> int:
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.get_num_threads()
    return max((library["num_threads"] for library in _BLAS.info()), default=1)


def _within(left: NDArray, right: NDArray, bound: NDArray) -> tuple[NDArray, NDArray]:
    """Pairs (row, column) at which the product of (rows, c) and (c, n) is at most bound[row]."""
    bound = np.nextafter(bound.astype(left.dtype), np.inf, dtype=left.dtype)[:, None]
    # Fresh pages for every block would cost as much as its product.
    products = np.empty(len(left) * _COLUMNS, dtype=left.dtype)
    found = []
    for start in range(0, right.shape[1], _COLUMNS):
        block = right[:, start : start + _COLUMNS]
        width = block.shape[1]
        product = np.matmul(left, block, out=products[: len(left) * width].reshape(-1, width))
        row, column = np.divmod(np.flatnonzero(product <= bound), width)
        found.append((row, column + start))
    rows, columns = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(columns)


def _closest(x: NDArray, start: int, row: NDArray, column: NDArray, k: int) -> NDArray[np.float64]:
    """(rows, k) ascending distances from candidate pairs (start + row, column) in any order."""
    order = np.argsort(row.astype(np.int16), kind="stable")  # a radix sort
    row, column, count = row[order], column[order], np.bincount(row)
    squared = np.full((len(count), count.max()), np.inf)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    for part in range(0, len(row), 1 << 14):
        pairs = slice(part, part + (1 << 14))
        difference = x.take(start + row[pairs], axis=0)
        difference -= x.take(column[pairs], axis=0)
        distance = np.einsum("ij,ij->i", difference, difference)
        squared[row[pairs], place[pairs]] = distance
    return np.sqrt(np.sort(squared, axis=1)[:, :k])


def _search_tensor(x: Tensor, k: int, exclude_self: bool) -> Tensor:
    """(n, k) or (M, n, k) Euclidean distances in x's own precision."""
    import torch

    points = x if x.dim() == 3 else x[None]
    own = torch.arange(points.shape[-2], device=x.device)
    squared, norms = _squared_distances(points)
    # The own index is masked, never recognised by its distance, which need not come out smallest.
    squared[:, own, own] = torch.inf if exclude_self else -1.0
    nearest, index = squared.topk(k, largest=False)
    scale = norms[..., None] + norms.gather(1, index.flatten(1)).view_as(nearest)
    return _refined(points, nearest, index, scale).reshape(*x.shape[:-1], k)


def _squared_distances(points: Tensor) -> tuple[Tensor, Tensor]:
    """(M, n, n) squared distances by one product, and the (M, n) squared norms after centring."""
    import torch

    centred = points - points.mean(1, keepdim=True)
    norms = centred.square().sum(-1)
    if not torch.isfinite(norms).all():
        raise ValueError("points must be finite, got NaN or inf (or coordinates that overflow)")
    both = norms[:, :, None] + norms[:, None, :]
    with torch.autocast(points.device.type, enabled=False):  # a distance needs all digits
        return torch.baddbmm(both, centred, centred.mT, alpha=-2.0), norms


def _refined(points: Tensor, squared: Tensor, index: Tensor, scale: Tensor) -> Tensor:
    """Distances in order, with the close pairs recomputed from their differences."""
    distance = squared.clamp_min(0).sqrt()
    member, row, column = (squared <= _REFINE_BELOW * scale).nonzero(as_tuple=True)
    neighbour = index[member, row, column]
    difference = points[member, row] - points[member, neighbour]
    distance[member, row, column] = difference.square().sum(-1).sqrt()
    return distance.sort(-1).values
