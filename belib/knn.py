"""Nearest-neighbour distances: the only neighbour search of the package.

Arrays are searched in float64, by a k-d tree up to `TREE_DIMENSIONS` dimensions and by matrix
products above, where trees visit nearly every point; tensors by one batched matrix product. All
three are exact: a product selects candidates, with a bound of its rounding error, and where the
bound cannot tell which points are the nearest, their differences decide. The searches use torch's
number of threads where it is imported, else BLAS's.
"""

from __future__ import annotations

import math
import sys
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from threadpoolctl import ThreadpoolController

from belib.arrays import is_tensor, real_array, whole_number

if TYPE_CHECKING:  # torch takes seconds to import, and arrays can do without it
    from torch import Tensor

TREE_DIMENSIONS = 8
"""Dimensions up to which the tree is the faster search; measured by benchmarks/estimators.py."""

_BLAS = ThreadpoolController()

METRICS = {"euclidean": 2.0, "chebyshev": np.inf}
_ROWS, _COLUMNS = 256, 4096  # of a block of products: 4 MB in float32, near the cache's size

_REFINE_BELOW = 1e-2
"""Squared distances below this share of the squared norms are computed from differences."""

_RESOLVED = 1e-150
"""Distances above this share of the largest coordinate have squares that float64 can hold."""


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
            separately. Gradients pass through a tensor's distances; that of a distance 0 is 0.
        k: neighbours, 1 <= k <= n (< n where the point itself is excluded).
        exclude_self: False counts the point itself as its first neighbour, at distance 0.0, as
            URLB's APT does.
        metric: "euclidean", or for arrays "chebyshev" (always by the tree).

    Returns:
        Ascending distances (n, k) or (M, n, k) of x's kind: those of float32 tensors to a relative
        1e-4, arrays' to 1e-12. Duplicates are at exactly 0.0. Memory is O(n (k + d)) for arrays,
        O(n^2) a member for tensors: never the (n, n, d) differences.

    Raises ValueError where k does not fit n, for points that are not finite real numbers, and for
    distances beyond what floats can hold, or squares of which they cannot. While a CUDA graph is
    captured nothing is checked: distances are NaN where coordinates are not finite, and the nearest
    are those of a float32 product, right where distances are not below 1e-3 of the points' spread.

    >>> knn_distances(np.array([[0.0], [1.0], [3.0]]), k=2)
    array([[1., 3.],
           [1., 2.],
           [2., 3.]])
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if is_tensor(x):
        if metric != "euclidean":
            raise ValueError(f"metric must be euclidean for tensors, got {metric!r}")
        _check_tensor(x)
        return _search_tensor(x, _checked_k(k, x.shape[-2], exclude_self), exclude_self)
    points = real_array("x", x, ndim=2)
    if points.shape[1] == 0:
        raise ValueError(f"x must have at least one column, got shape {points.shape}")
    k = _checked_k(k, len(points), exclude_self)
    return _search_array(points, k + exclude_self, metric)[:, int(exclude_self) :]


def _checked_k(k: int, n: int, exclude_self: bool) -> int:
    k, most = whole_number("k", k, least=-math.inf), n - exclude_self
    if not 1 <= k <= most:
        raise ValueError(f"k must be between 1 and {most} for {n} points, got {k}")
    return k


def _search_array(points: NDArray, k: int, metric: str) -> NDArray[np.float64]:
    """(n, k) distances, the point's own 0 among them: it, or a duplicate, comes first."""
    exponent = np.frexp(np.abs(points).max())[1]
    scaled = np.ldexp(points, -exponent)  # so that squares neither overflow nor all vanish
    by_tree = metric != "euclidean" or points.shape[1] <= TREE_DIMENSIONS
    search = _search_tree if by_tree else _search_products
    distances = search(scaled, k, METRICS[metric])
    if metric == "euclidean" and k > 1 and (distances[:, 1] < _RESOLVED).any():
        _, place, copies = np.unique(points, axis=0, return_inverse=True, return_counts=True)
        vanished = (distances < _RESOLVED).sum(1) > np.minimum(copies[place.ravel()], k)
        if vanished.any():
            raise ValueError(
                f"points must be equal or further apart than {_RESOLVED} of the largest "
                f"coordinate, {np.abs(points).max():.3g}, got some that are not"
            )
    with np.errstate(over="ignore"):
        distances = np.ldexp(distances, exponent)
    if not np.isfinite(distances).all():
        raise ValueError(f"distances must be finite, got points up to {np.abs(points).max():.3g}")
    return distances


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


def _check_tensor(x: Tensor) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must be of a floating-point type, got {x.dtype}")
    if x.dim() not in (2, 3) or x.shape[-1] == 0:
        raise ValueError(f"x must have shape (n, d) or (M, n, d), got {tuple(x.shape)}")


def _search_tensor(x: Tensor, k: int, exclude_self: bool) -> Tensor:
    """(n, k) or (M, n, k) Euclidean distances in x's own precision, at least float32 inside."""
    from torch.nn import functional

    points = x if x.dim() == 3 else x[None]
    points = points.float() if x.element_size() < 4 else points
    others = k - (not exclude_self)
    distances, index = _nearest(points.detach(), others)
    if x.requires_grad:
        distances = _with_gradients(points, distances, index)
    distances = functional.pad(distances, (k - others, 0))  # the point itself comes first
    return distances.to(x.dtype).reshape(*x.shape[:-1], k)


def _on_card(x: Tensor) -> bool:
    return x.is_cuda


def _captured(x: Tensor) -> bool:
    """Whether a CUDA graph is being captured, which can wait for no number."""
    import torch

    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _nearest(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Distances (M, n, k), ascending, from each point to k others, and the others' indices."""
    n = points.shape[1]
    squared, lower, norms = _squared_distances(points)
    # candidates: those whose squared distances have the smallest lower bounds
    bound, index = lower.topk(min(2 * k, n - 1), largest=False)
    scale = norms[..., None] + norms.gather(1, index.flatten(1)).view_as(bound)
    squared = squared.gather(-1, index)
    # k points are within `reach`; one that is no candidate is beyond the last bound
    reach = (2 * squared - bound).sort(-1).values[..., k - 1 : k]
    sure = reach.isfinite() & ((reach <= bound[..., -1:]) | (index.shape[-1] == n - 1))
    if _on_card(points):
        _, order = squared.sort(-1)
        distances = _recomputed(points, index.gather(-1, order[..., :k]))
        index = index.gather(-1, order[..., :k])
    else:
        close = (squared <= _REFINE_BELOW * scale) & (bound <= reach)
        distances = _refined(points, squared.clamp_min(0), index, close)
    distances, order = distances.sort(-1)
    distances, index = distances[..., :k], index.gather(-1, order[..., :k])
    if k and not _captured(points) and not sure.all():
        if not points.isfinite().all():
            raise ValueError("x must be finite, got NaN or inf")
        for member in range(len(points)):
            rows = (~sure[member, :, 0]).nonzero()[:, 0]
            found = _by_differences(points[member], rows, k)
            distances[member, rows], index[member, rows] = found
    return distances, index


def _squared_distances(points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Squared distances (M, n, n) by one product, lower bounds of them, and squared norms (M, n).

    The bounds allow for the product's rounding errors, 8 standard deviations of a random walk, and
    for what squares lose that are too small for their type. Norms are those after centring.
    """
    import torch

    from belib.machine import products

    d, kind = points.shape[-1], torch.finfo(points.dtype)
    slack = 2 * kind.eps * (math.sqrt(d) + 4)
    centred = points - points.mean(1, keepdim=True)
    norms = centred.square().sum(-1)
    both = norms[:, :, None] + norms[:, None, :]
    with products("float32", points.device):  # a distance needs all digits
        squared = torch.baddbmm(both, centred, centred.mT, alpha=-2.0)
    lower = torch.add(squared, both.add_(d * kind.tiny / slack), alpha=-slack)
    # The own index is masked, never recognised by its distance, which need not come out smallest.
    lower.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    return squared, lower, norms


def _refined(points: Tensor, squared: Tensor, index: Tensor, close: Tensor) -> Tensor:
    """Distances of which the close ones are computed from differences."""
    distances = squared.sqrt()
    member, row, column = close.nonzero(as_tuple=True)
    neighbour = points[member, index[member, row, column]]
    distances[member, row, column] = _lengths(points[member, row] - neighbour)
    return distances


def _lengths(difference: Tensor) -> Tensor:
    """Norms over the last axis, whose squares may be beyond floats."""
    import torch

    largest = difference.abs().amax(-1, keepdim=True)
    unit = torch.where(largest > 0, difference / largest, 0.0)
    return unit.square().sum(-1).sqrt() * largest[..., 0]


def _recomputed(points: Tensor, index: Tensor) -> Tensor:
    """Distances (M, n, k) from differences: which pairs are close need not be known."""
    import torch

    distances = torch.empty(index.shape, dtype=points.dtype, device=points.device)
    for place, column in enumerate(index.unbind(-1)):  # memory for (M, n, d), not (M, n, k, d)
        neighbour = points.gather(1, column[..., None].expand_as(points))
        distances[..., place] = (points - neighbour).square().sum(-1).sqrt()
    return distances


def _with_gradients(points: Tensor, distances: Tensor, index: Tensor) -> Tensor:
    """The same distances, through which gradients reach the points; at 0 they are 0."""
    import torch

    columns = [column[..., None].expand_as(points) for column in index.unbind(-1)]
    norms = [(points - points.gather(1, column)).norm(dim=-1) for column in columns]
    if not norms:
        return distances
    differentiable = torch.stack(norms, -1)
    return distances + (differentiable - differentiable.detach())


def _by_differences(points: Tensor, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Distances (rows, k) from some of the points (n, d) to k others, and the others' indices."""
    import torch

    # in units of about the largest coordinate, so that squares neither overflow nor all vanish
    exact = points.double()
    exponent = math.frexp(float(exact.abs().max()))[1]
    exact = exact * 2.0 ** -max(exponent, -1000)
    apart = torch.cdist(exact[rows], exact, compute_mode="donot_use_mm_for_euclid_dist")
    apart[torch.arange(len(rows), device=rows.device), rows] = torch.inf
    nearest, index = apart.topk(k, largest=False)
    lengths = [_lengths(exact[rows] - exact[column]) for column in index.unbind(-1)]
    distances = torch.stack(lengths, -1)
    if ((nearest < _RESOLVED) & (distances > 0)).any():
        raise ValueError(
            f"points must be equal or further apart than {_RESOLVED} of the largest coordinate, "
            "got some that are not"
        )
    distances = (distances * 2.0 ** max(exponent, -1000)).to(points.dtype)
    if not distances.isfinite().all():
        raise ValueError(f"distances must be finite, got points up to {points.abs().max():.3g}")
    distances, order = distances.sort(-1)
    return distances, index.gather(-1, order)
