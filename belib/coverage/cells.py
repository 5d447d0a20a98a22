"""Cells around the joint states of all datasets, and which of them a dataset visits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from belib import estimators
from belib.coverage.halves import Statistic
from belib.knn import knn_distances

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True)
class Cells:
    """Balls around joint states (m, d), each reaching to its k-th nearest joint state.

    99 % of the joint states have at most density 1 where `volume` is the unit.
    """

    states: Array
    reach: Array
    k: int
    volume: float

    @classmethod
    def around(cls, states: Array, k: int) -> "Cells":
        reach = knn_distances(states, k=k)[:, -1]
        varying = states[:, np.ptp(states, axis=0) > 0]  # in others there is no density
        log_f = estimators.knn_density(varying, k=k, log=True, duplicates="drop")
        return cls(states, reach, k, float(np.exp(-np.quantile(log_f, 0.99))))

    def statistics(self, points: Array, episodes: Integers, count: int) -> dict[str, Statistic]:
        """Cells, recall and density of points (n, d) whose episodes, of `count`, ascend."""
        sizes = np.bincount(episodes, minlength=count)
        present, starts = np.flatnonzero(sizes), np.cumsum(sizes) - sizes
        nearest = np.full((len(self.states), count), np.inf)
        inside = np.zeros(count)
        for rows in np.array_split(np.arange(len(self.states)), len(self.states) // 256 + 1):
            apart = cdist(self.states[rows], points)
            nearest[np.ix_(rows, present)] = np.minimum.reduceat(apart, starts[present], axis=1)
            within = (apart <= self.reach[rows, None]).sum(0)
            inside += np.bincount(episodes, within, minlength=count)
        r = np.median(self.reach)
        return {
            "cells": lambda keep: float((nearest[:, keep].min(1) <= self.reach).mean()),
            "recall": lambda keep: float((nearest[:, keep].min(1) <= r).mean()),
            "density": lambda keep: float(inside[keep].sum() / (self.k * sizes[keep].sum())),
        }


def net(points: Array, size: int) -> Integers:
    """The cell of each point (n,), of a net of at most `size` cells of about equal width.

    Farthest-point traversal (Gonzalez 1985): each new centre is the point farthest from those
    before, and a point belongs to the nearest centre. Cells are spread by place, not by how many
    points are there; equal points share one.
    """
    cell = np.zeros(len(points), dtype=np.intp)
    nearest = np.square(points - points[0]).sum(1)
    for number in range(1, size):
        centre = nearest.argmax()
        if nearest[centre] == 0:
            break
        squared = np.square(points - points[centre]).sum(1)
        closer = squared < nearest
        cell[closer], nearest[closer] = number, squared[closer]
    return cell


def visited(cell: Integers, episodes: Integers, count: int, cells: int) -> Statistic:
    """Share of `cells` cells that states in cells (n,), of episodes (n,) of `count`, visit."""
    there = np.zeros((cells, count), dtype=bool)
    there[cell, episodes] = True
    return lambda keep: float(there[:, keep].any(1).mean())
