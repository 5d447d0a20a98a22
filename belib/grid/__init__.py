"""The whole experiment at a scale: `params/grid.<scale>.yaml` read as jobs that need each other.

A job is collect (a line's datasets, in lockstep), offline (one algorithm on one dataset, tasks x
seeds as members), coverage (notebook 06, a domain) or report (notebook 07). From a shell:
`python -m belib.grid --help`; Snakemake runs the jobs, see `workflow/`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from belib import envs, paths, runs
from belib.config import (
    OfflineConfig,
    PretrainConfig,
    expand,
    read_grid,
    read_yaml,
    scales,
    unknown_name,
)
from belib.config.checks import AT_LEAST_ONE, check_type, named

ENTRIES = ("datasets", "together", "offline")
"""Of a grid's file."""

NO_DATASET = "none"
"""Of what is no policy: see `training.evaluate_baselines`."""

MAPS = "06_coverage_plots"
"""The notebook of the stage coverage, and what its sizes are named after."""

STAGES = ("collect", "offline", "coverage", "report")
"""In their order; names of jobs begin with them."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A unit of work, which does nothing where it is finished."""

    name: str
    """`collect/walker/behavioral-0.5-s0`, `offline/walker/behavioral-0.5-s0/td3`, `report`."""
    configs: tuple[runs.Config, ...] = ()
    """The members; none for coverage and report, which are notebooks."""
    needs: tuple[str, ...] = ()
    """Names of the jobs that come before."""

    @property
    def stage(self) -> str:
        """One of `STAGES`."""
        return self.name.partition("/")[0]

    @property
    def collecting(self) -> list[PretrainConfig]:
        """The members of a job of the stage collect."""
        return [config for config in self.configs if isinstance(config, PretrainConfig)]

    @property
    def learning(self) -> list[OfflineConfig]:
        """The members of a job of the stage offline."""
        return [config for config in self.configs if isinstance(config, OfflineConfig)]

    @property
    def targets(self) -> list[str]:
        """Names by which the job, or a whole that it belongs to, can be asked for."""
        _, _, place = self.name.partition("/")
        places = [f"{c.domain}/{c.dataset}" for c in self.configs]
        places = places if self.stage == "collect" else [place] * bool(place)
        return [self.name, *places, *(f"{self.stage}/{place}" for place in places)]


def read(scale: str) -> list[Job]:
    """The jobs of `params/grid.<scale>.yaml`, those that others need first.

    Raises ValueError for an unknown scale, a wrong value, a task of another domain, a dataset asked
    for twice or not at all; TypeError for a wrong name or type. The message has the file's entry.
    """
    known = scales("grid")
    if scale not in known:
        near = unknown_name(scale, known)
        raise ValueError(f"scale must be one of {', '.join(known)}, got {near}")
    file, grid = f"params/grid.{scale}.yaml", read_grid(scale)
    for name in grid:
        if name not in ENTRIES:
            raise TypeError(f"{file} has no entry {unknown_name(name, ENTRIES)}")
    lines, entries = (_dictionaries(grid, name, file) for name in ("datasets", "offline"))
    if not lines:
        raise ValueError(f"{file} must list datasets, got {lines}")
    with named(file):
        together = check_type("together", grid.get("together", 1), int, AT_LEAST_ONE)
    collecting = collect_jobs(lines, scale, together, file)
    learning = offline_jobs(entries, scale, collecting, file)
    maps = scale in scales(MAPS)
    if maps:  # which papermill reads: it would take the last of two values of a name
        read_yaml(paths.PARAMS / f"{MAPS}.{scale}.yaml")
    return [*collecting, *learning, *notebook_jobs([*collecting, *learning], maps)]


def _dictionaries(grid: dict[str, Any], name: str, file: str) -> list[dict[str, Any]]:
    """A list of the grid's file, none where it has none."""
    found = grid.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        wanted = f"{file}: {name} should be a list of lines as `- {{domain: walker}}`"
        raise TypeError(f"{wanted}, got {found!r}")
    return found


def collect_jobs(lines: Sequence[dict], scale: str, together: int, file: str) -> list[Job]:
    """Up to `together` datasets of one line, domain and objective are members of one job."""
    jobs, sizes, known = [], PretrainConfig.at_scale(scale), set()
    for number, line in enumerate(lines, 1):
        with named(f"{file}, datasets, line {number}"):
            configs = expand(line, sizes)
            for config in configs:
                envs.primal_task(config.domain)
                if (config.domain, config.dataset) in known:
                    raise ValueError(f"{config.domain}/{config.dataset} is there twice")
                known.add((config.domain, config.dataset))
        for first, *others in _lockstep(configs, together):
            more = f"+{len(others)}" if others else ""
            name = f"collect/{first.domain}/{first.dataset}{more}"
            jobs.append(Job(name=name, configs=(first, *others)))
    return jobs


def _lockstep(configs: Sequence[PretrainConfig], most: int) -> Iterator[tuple[PretrainConfig, ...]]:
    """Even groups of at most `most` configs of one objective that differ only in MEMBER_FIELDS."""
    free = set(PretrainConfig.MEMBER_FIELDS) - {"objective"}
    same = [item.name for item in fields(PretrainConfig) if item.name not in free]
    groups: dict[tuple, list[PretrainConfig]] = {}
    for config in configs:
        groups.setdefault(tuple(getattr(config, name) for name in same), []).append(config)
    for group in groups.values():
        size = math.ceil(len(group) / math.ceil(len(group) / most))
        yield from (tuple(group[i : i + size]) for i in range(0, len(group), size))


def offline_jobs(
    entries: Sequence[dict], scale: str, collecting: Sequence[Job], file: str
) -> list[Job]:
    """A job for each dataset and variant of an algorithm, to which entries add members.

    And one a domain for what policies must beat, on the dataset `none`.
    """
    makers = {(c.domain, c.dataset): job.name for job in collecting for c in job.configs}
    members: dict[str, dict[tuple, OfflineConfig]] = {}
    sizes = OfflineConfig.at_scale(scale)
    for number, entry in enumerate(entries, 1):
        with named(f"{file}, offline, entry {number}"):
            patterns = entry.get("dataset", "*")
            patterns = patterns if isinstance(patterns, list) else [patterns]
            patterns = check_type("dataset", patterns, list[str])
            rest = {name: value for name, value in entry.items() if name != "dataset"}
            for config in expand(rest, sizes):
                _check_task(config)
                names = [name for domain, name in makers if domain == config.domain]
                for name in _matching(patterns, names):
                    own = replace(config, dataset=name)
                    job = f"offline/{own.domain}/{name}/{own.variant}"
                    same = members.setdefault(job, {}).setdefault((own.task, own.seed), own)
                    if same != own:
                        raise ValueError(f"{job}, {own.task}, seed {own.seed} is there twice")
    jobs = []
    for name, found in members.items():
        configs = tuple(found.values())
        runs.check_members(configs)
        needed = makers[configs[0].domain, configs[0].dataset]
        jobs.append(Job(name=name, configs=configs, needs=(needed,)))
    return [*jobs, *_baseline_jobs(jobs, sizes)]


def _baseline_jobs(jobs: Sequence[Job], sizes: OfflineConfig) -> Iterator[Job]:
    """Doing nothing and random actions, for every task and seed of a domain."""
    members: dict[str, dict[tuple, OfflineConfig]] = {}
    for config in (config for job in jobs for config in job.learning):
        own = members.setdefault(config.domain, {})
        place = {"domain": config.domain, "task": config.task, "seed": config.seed}
        own.setdefault((config.task, config.seed), replace(sizes, dataset=NO_DATASET, **place))
    for domain, found in members.items():
        name = f"offline/{domain}/{NO_DATASET}/baselines"
        yield Job(name=name, configs=tuple(found.values()))


def notebook_jobs(jobs: Sequence[Job], maps: bool) -> list[Job]:
    """Coverage of each domain, where `maps` are wanted, and the report: of all before them."""
    names = [job.name for job in jobs]
    domains = dict.fromkeys(config.domain for job in jobs for config in job.configs if maps)
    coverage = [
        Job(name=f"coverage/{d}", needs=tuple(n for n in names if n.split("/")[1] == d))
        for d in domains
    ]
    return [*coverage, Job(name="report", needs=(*names, *(job.name for job in coverage)))]


def select(jobs: Sequence[Job], only: Iterable[str]) -> list[Job]:
    """The jobs of the targets in `only` and all that they need; all jobs where it is empty.

    A target is a whole name or its beginning (`walker`, `walker/behavioral-0.5`, `collect`,
    `offline/walker/rnd-s0/td3`), or a pattern (`*/td3`). ValueError for one that names nothing.
    """
    only, chosen, by_name = list(only), set(), {job.name: job for job in jobs}
    for target in only:
        found = [job for job in jobs if any(_begins(name, target) for name in job.targets)]
        if not found:
            known = dict.fromkeys(part for job in jobs for part in _beginnings(job.targets))
            raise ValueError(f"the grid has no target {unknown_name(target, known)}")
        chosen.update(job.name for job in found)
    left = list(chosen)
    while left:
        needed = set(by_name[left.pop()].needs) - chosen
        chosen |= needed
        left += needed
    return [job for job in jobs if job.name in chosen or not only]


def _begins(name: str, target: str) -> bool:
    begins = name == target or name.startswith((f"{target}/", f"{target}-"))
    return begins or fnmatchcase(name, target) or fnmatchcase(name, f"{target}-*")


def _beginnings(names: Iterable[str]) -> Iterator[str]:
    """Names, their beginnings up to each `/`, and datasets' without their seed."""
    for name in names:
        parts = name.split("/")
        yield from ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
        yield name.rpartition("-s")[0] or name


def _matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that match any pattern; ValueError for a pattern that matches none."""
    if not patterns:
        raise ValueError(f"dataset must have a name or pattern, got {patterns}")
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"dataset must be of the grid's, got {unknown_name(pattern, names)}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _check_task(config: OfflineConfig) -> None:
    known = envs.domain_tasks(config.domain)
    if config.task not in known:
        of = f"one of the domain {config.domain} ({', '.join(known)})"
        raise ValueError(f"task must be {of}, got {config.task!r}")
