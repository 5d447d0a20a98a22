"""What a computation costs, counted without computing: operators, FLOPs, bytes, memory.

Under `Counting` every new tensor is hollow: it has the shape, type and device that it would have,
and one number that stands for all. Real algorithms run as they are, at any size, in milliseconds.
"""

import collections
import functools
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from belib import machine

# Operators that cost far more than their bytes say: random numbers, and orders.
_DRAWS = {"randn", "rand", "randint", "normal_", "uniform_", "random_", "rand_like", "randn_like"}
_ORDERS = {"topk", "sort", "argsort", "kthvalue"}
# Their results are Python's own: hollow numbers count as 1 or True.
_ANSWERS = {"_local_scalar_dense", "is_nonzero", "equal"}

THIN = 48
"""Products with an edge below this wait for their operands: first and last layers."""


class Operator(NamedTuple):
    """One call of a kernel."""

    kind: str
    """view, pass (over memory), draw, order; square or thin (product) and its number type."""
    amount: int
    """Bytes of a pass, numbers of a draw or order, FLOPs of products."""
    nbytes: int
    """Bytes read and written."""
    each: int = 0
    """FLOPs of one matrix product of a batch of them."""


class Counting(TorchDispatchMode):
    """Counts what runs in a `with` block, of which nothing is computed.

    Where something depends on numbers, all are 1; searches for rare cases (`nonzero`) find none.
    Only torch's work is seen, not numpy's.
    """

    def __init__(self) -> None:
        super().__init__()
        machine.fastest_float32()  # tried once a process: with real numbers, not hollow ones
        self.operators: collections.Counter[Operator] = collections.Counter()
        self.live = self.peak = 0
        """Bytes of the hollow tensors that are alive, and the most that ever were."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, for two seconds

    @property
    def flops(self) -> int:
        """Of all matrix products."""
        return sum(o.amount * number for o, number in self.operators.items() if o.each)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.is_view or torch.Tag.inplace_view in func.tags:
            self.operators[Operator("view", 0, 0)] += 1
            return func(*args, **kwargs)
        if _name(func) in _ANSWERS:
            found = func(*args, **kwargs)
        else:
            names = _arguments(func)
            changed = [args[i] if i < len(args) else kwargs[names[i]] for i in _written(func)]
            found = changed or self._hollow(func, args, kwargs)
        self.operators[_operator(func, args, kwargs, found)] += 1
        if _written(func):
            return found[0] if func._schema.returns else None
        return found

    def _hollow(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """What the operator would return, by its shapes and types alone."""
        tensors = list(_tensors((args, kwargs)))
        device = kwargs.get("device") or (tensors[0].device if tensors else "cpu")
        if tensors and torch.Tag.pointwise in func.tags:
            shape = torch.broadcast_shapes(*(each.shape for each in tensors))
            found = func(*tree_map(_first, args), **tree_map(_first, kwargs))
            return tree_map(lambda x: self._kept(x, shape, device), found)
        if _name(func) == "nonzero":
            none = torch.empty(0, dtype=torch.int64)
            return self._kept(none, torch.Size((0, args[0].dim())), device)
        changes = {"device": "meta"} if "device" in _arguments(func) else {}
        changes |= {"generator": None} if kwargs.get("generator") is not None else {}
        found = func(*tree_map(_shape_only, args), **tree_map(_shape_only, kwargs | changes))
        return tree_map(lambda x: self._kept(x, getattr(x, "shape", torch.Size()), device), found)

    def _kept(self, x: Any, shape: torch.Size, device: Any) -> Any:
        """A tensor of x's type with one number for all, whose memory counts while it is alive."""
        if not isinstance(x, Tensor):
            return x
        made = torch.ones((), dtype=x.dtype, device=device)
        nbytes = shape.numel() * x.element_size()
        self.live += nbytes
        self.peak = max(self.peak, self.live)
        weakref.finalize(made.untyped_storage(), self._freed, nbytes)
        return made.expand(shape)

    def _freed(self, nbytes: int) -> None:
        self.live -= nbytes


def _shape_only(x: Any) -> Any:
    return x.to("meta") if isinstance(x, Tensor) else x


def _first(x: Any) -> Any:
    """A tensor's first number, in as many dimensions, by which types are promoted."""
    return x.as_strided((1,) * x.dim(), (0,) * x.dim()) if isinstance(x, Tensor) else x


@functools.cache
def _name(func: Any) -> str:
    return func._schema.name.split("::")[1]


@functools.cache
def _arguments(func: Any) -> list[str]:
    return [argument.name for argument in func._schema.arguments]


@functools.cache
def _written(func: Any) -> list[int]:
    """The places of the arguments that an operator writes into; none if it makes a new tensor."""
    infos = (argument.alias_info for argument in func._schema.arguments)
    return [i for i, info in enumerate(infos) if info and info.is_write]


def _operator(func: Any, args: tuple, kwargs: dict, found: Any) -> Operator:
    """What an operator with these arguments costs."""
    name, tensors = _name(func), list(_tensors((args, kwargs, found)))
    nbytes = sum(each.numel() * each.element_size() for each in tensors)
    numbers = max((each.numel() for each in tensors), default=0)
    if name in _DRAWS | _ORDERS:
        return Operator("draw" if name in _DRAWS else "order", numbers, nbytes)
    if func._overloadpacket in flop_registry:
        flops = flop_registry[func._overloadpacket](*args, **kwargs, out_val=found)
        each = flops // (len(found) if found.dim() == 3 else 1)
        inner = each // max(2 * found.shape[-1] * found.shape[-2], 1)
        shape = "thin" if min(inner, *found.shape[-2:]) < THIN else "square"
        return Operator(f"{shape} {str(found.dtype).removeprefix('torch.')}", flops, nbytes, each)
    return Operator("pass", nbytes, nbytes)


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (each for each in tree_leaves(tree) if isinstance(each, Tensor))
