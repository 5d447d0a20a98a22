"""The jobs of `params/grid.<scale>.yaml`: their configs, needs and state."""

import fnmatch
import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from belib import envs, paths, results, runs, training
from belib.config import OfflineConfig, PretrainConfig, expand, read_yaml, unknown_name
from belib.config.checks import check_type, named


@dataclass(frozen=True, kw_only=True)
class Job:
    """A unit of work: configs of the members, none for notebooks, and names of needed jobs."""

    name: str  # collect/walker/rnd-s0, offline/walker/rnd-s0/td3, baselines/walker, report
    configs: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def stage(self) -> str:
        """Return collect, offline, baselines, coverage or report."""
        return self.name.split("/")[0]

    @property
    def targets(self) -> list[str]:
        """Return the job's names for `select`, with and without its stage."""
        places = [self.name.partition("/")[2]]
        if self.stage == "collect":
            places = [f"{config.domain}/{config.dataset}" for config in self.configs]
        return [self.name, *places, *(f"{self.stage}/{place}" for place in places)]


def read(scale: str) -> list[Job]:
    """Return the jobs of a scale, each after the jobs it needs.

    Raise ValueError or TypeError with the file and entry of a wrong name or value.
    """
    sizes = PretrainConfig.at_scale(scale), OfflineConfig.at_scale(scale)
    grid: dict[str, Any] = {"datasets": [], "offline": [], "together": 1}
    with named(f"params/grid.{scale}.yaml"):
        for name, value in read_yaml(paths.PARAMS / f"grid.{scale}.yaml").items():
            if name not in grid:
                raise TypeError(f"there is no entry {unknown_name(name, grid)}")
            if name != "together" and not all(isinstance(line, dict) for line in value):
                raise TypeError(f"{name} should be a list of lines `- {{...}}`, got {value}")
            grid[name] = value
        check_type("together", grid["together"], int, "at least 1")
        jobs = _collect_jobs(grid["datasets"], sizes[0], grid["together"])
        jobs += _offline_jobs(grid["offline"], sizes[1], jobs)
    maps = paths.PARAMS / f"06_coverage_plots.{scale}.yaml"
    if maps.exists():
        read_yaml(maps)  # raises if it is malformed
        for domain in dict.fromkeys(config.domain for job in jobs for config in job.configs):
            needs = tuple(job.name for job in jobs if job.name.split("/")[1] == domain)
            jobs.append(Job(name=f"coverage/{domain}", needs=needs))
    return [*jobs, Job(name="report", needs=tuple(job.name for job in jobs))]


def _collect_jobs(lines: Sequence[dict], sizes: PretrainConfig, together: int) -> list[Job]:
    """Return jobs of up to `together` datasets of one line that can be collected in lockstep."""
    jobs, names = [], set()
    free = {*PretrainConfig.MEMBER_FIELDS} - {"objective"}
    shared = [item.name for item in fields(PretrainConfig) if item.name not in free]
    for number, line in enumerate(lines, 1):
        groups: dict[tuple, list[PretrainConfig]] = {}
        with named(f"datasets, line {number}"):
            for config in expand(line, sizes):
                envs.primal_task(config.domain)
                if (name := f"{config.domain}/{config.dataset}") in names:
                    raise ValueError(f"{name} is there twice")
                names.add(name)
                groups.setdefault(tuple(getattr(config, n) for n in shared), []).append(config)
        for group in groups.values():
            size = math.ceil(len(group) / math.ceil(len(group) / together))  # for even parts
            for first, *more in (group[i : i + size] for i in range(0, len(group), size)):
                name = f"collect/{first.domain}/{first.dataset}" + f"+{len(more)}" * bool(more)
                jobs.append(Job(name=name, configs=(first, *more)))
    if not jobs:
        raise ValueError(f"datasets must have a line or more, got {lines}")
    return jobs


def _offline_jobs(
    entries: Sequence[dict], sizes: OfflineConfig, collecting: Sequence[Job]
) -> list[Job]:
    """Return a job for each dataset and learner, with the tasks and seeds of all entries.

    One more job per domain evaluates the baselines.
    """
    makers = {(c.domain, c.dataset): (job.name,) for job in collecting for c in job.configs}
    members: dict[str, dict[tuple, OfflineConfig]] = {}
    baselines: dict[str, dict[tuple, OfflineConfig]] = {}
    for number, entry in enumerate(entries, 1):
        with named(f"offline, entry {number}"):
            for policy in _policies(entry, sizes, makers):
                job, key = f"offline/{policy.domain}/{policy.dataset}", (policy.task, policy.seed)
                job = f"{job}/{policy.variant}"
                group = members.setdefault(job, {})
                if group.setdefault(key, policy) != policy:
                    raise ValueError(f"{job}, {policy.task}, seed {policy.seed} is there twice")
                none = {"domain": policy.domain, "task": policy.task, "seed": policy.seed}
                none = replace(sizes, dataset="none", **none)
                baselines.setdefault(f"baselines/{policy.domain}", {})[key] = none
    jobs = []
    for name, group in {**members, **baselines}.items():
        configs = tuple(group.values())
        runs.members(configs)
        needs = makers.get((configs[0].domain, configs[0].dataset), ())
        jobs.append(Job(name=name, configs=configs, needs=needs))
    return jobs


def _policies(
    entry: dict[str, Any], sizes: OfflineConfig, made: Collection[tuple[str, str]]
) -> list[OfflineConfig]:
    """Return the policies of an entry; its `dataset` has names or patterns of what is `made`."""
    policies, patterns = [], entry.get("dataset", "*")
    patterns = patterns if isinstance(patterns, list) else [patterns]
    if not check_type("dataset", patterns, list[str]):
        raise ValueError(f"dataset must have a name or pattern, got {patterns}")
    for config in expand({n: v for n, v in entry.items() if n != "dataset"}, sizes):
        training.check_tasks([config])
        names, chosen = [name for domain, name in made if domain == config.domain], {}
        for pattern in patterns:
            if not (matches := fnmatch.filter(names, pattern)):
                near = unknown_name(pattern, names)
                raise ValueError(f"dataset must be of the grid's, got {near}")
            chosen |= dict.fromkeys(matches)
        policies += [replace(config, dataset=name) for name in chosen]
    return policies


def select(jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """Return the jobs of the targets in `only` and all that they need; all jobs without targets.

    A target is a name, its beginning (`walker`, `walker/behavioral-0.5`, `collect`), or a pattern
    (`*/td3`). Raise ValueError for a target without a job.
    """
    chosen = set()
    for target in only:
        forms = (target, f"{target}/*", f"{target}-*")
        hits = {
            j.name for j in jobs for n in j.targets if any(fnmatch.fnmatchcase(n, f) for f in forms)
        }
        if not hits:
            names = {name.rpartition("-s")[0] or name for job in jobs for name in job.targets}
            raise ValueError(f"the grid has no target {unknown_name(target, sorted(names))}")
        chosen |= hits
    for job in reversed(jobs):  # which come after the jobs they need
        chosen.update(job.needs if job.name in chosen else ())
    return [job for job in jobs if job.name in chosen or not only]


def folders(job: Job, runs_dir: Path) -> list[Path]:
    """Return the folders of a job's members."""
    if job.stage == "baselines":
        names = [name.replace(" ", "-") for name in results.BASELINES]
        return [config.folder(runs_dir, name) for config in job.configs for name in names]
    return [config.folder(runs_dir) for config in job.configs]


def is_finished(job: Job, runs_dir: Path) -> bool:
    """Return whether all outputs of a job are on disk."""
    if not job.configs:
        return (runs_dir / "workflow" / "finished" / job.name).exists()
    pairs = zip(folders(job, runs_dir), itertools.cycle(job.configs), strict=False)
    return all(training.is_finished(config, folder) for folder, config in pairs)
