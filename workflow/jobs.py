"""The jobs of `params/grid.<scale>.yaml`: their configs, needs and state."""

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from belib import paths, results, runs, training
from belib.config import OfflineConfig, PretrainConfig, read_yaml
from belib.config.checks import check_type, named, unknown_name


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
    with named(f"params/grid.{scale}.yaml"):
        jobs = training_jobs(*sizes, **read_yaml(paths.PARAMS / f"grid.{scale}.yaml"))
    if (paths.PARAMS / f"06_coverage_plots.{scale}.yaml").exists():
        for domain in dict.fromkeys(config.domain for job in jobs for config in job.configs):
            needs = tuple(job.name for job in jobs if job.name.split("/")[1] == domain)
            jobs.append(Job(name=f"coverage/{domain}", needs=needs))
    return [*jobs, Job(name="report", needs=tuple(job.name for job in jobs))]


def training_jobs(
    collecting: PretrainConfig,
    learning: OfflineConfig,
    *,
    datasets: Sequence[dict[str, Any]],
    offline: Sequence[dict[str, Any]] = (),
    together: int = 1,
) -> list[Job]:
    """Return the jobs of a grid file's entries; `collecting` and `learning` have the sizes.

    A job collects up to `together` datasets of one line in lockstep, or learns from one dataset
    with one learner, for the tasks and seeds of all entries, or evaluates a domain's baselines.
    """
    check_type("together", together, int, "at least 1")
    makers: dict[tuple[str, str], str] = {}  # the job of each dataset
    groups: dict[str, dict[tuple[str, int], OfflineConfig]] = {}
    jobs, free = [], {*PretrainConfig.MEMBER_FIELDS} - {"objective"}
    shared = [item.name for item in fields(PretrainConfig) if item.name not in free]
    for number, line in enumerate(datasets, 1):
        parts: dict[tuple, list[PretrainConfig]] = {}
        with named(f"datasets, line {number}"):
            for config in collecting.expand(line):
                training.check_tasks([config])
                if (config.domain, config.dataset) in makers:
                    raise ValueError(f"{config.domain}/{config.dataset} is there twice")
                makers[config.domain, config.dataset] = ""
                parts.setdefault(tuple(getattr(config, n) for n in shared), []).append(config)
        for part in parts.values():
            size = math.ceil(len(part) / math.ceil(len(part) / together))  # for even parts
            for first, *more in (part[i : i + size] for i in range(0, len(part), size)):
                name = f"collect/{first.domain}/{first.dataset}" + f"+{len(more)}" * bool(more)
                jobs.append(Job(name=name, configs=(first, *more)))
                makers |= {(config.domain, config.dataset): name for config in (first, *more)}
    for number, entry in enumerate(offline, 1):
        with named(f"offline, entry {number}"):
            for config in learning.expand({"dataset": "*", **entry}):
                training.check_tasks([config])
                names = [name for domain, name in makers if domain == config.domain]
                if not (matches := fnmatch.filter(names, config.dataset)):
                    near = unknown_name(config.dataset, names)
                    raise ValueError(f"dataset must be one of the grid's, got {near}")
                key = (config.task, config.seed)
                for config in (replace(config, dataset=name) for name in matches):
                    name = f"offline/{config.domain}/{config.dataset}/{config.variant}"
                    if groups.setdefault(name, {}).setdefault(key, config) != config:
                        raise ValueError(f"{name}, {key[0]}, seed {key[1]} is there twice")
                same = {"domain": config.domain, "task": config.task, "seed": config.seed}
                baseline = replace(learning, dataset="none", **same)
                groups.setdefault(f"baselines/{config.domain}", {})[key] = baseline
    for name, group in groups.items():
        configs = tuple(runs.members(list(group.values())))
        maker = makers.get((configs[0].domain, configs[0].dataset))
        jobs.append(Job(name=name, configs=configs, needs=(maker,) if maker else ()))
    return jobs


def select(jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """Return the jobs of the targets in `only` and all that they need; all jobs without targets.

    A target is a name, its beginning (`walker`, `walker/behavioral-0.5`, `collect`), or a pattern
    (`*/td3`). Raise ValueError for a target without a job.
    """
    chosen = set()
    for target in only:
        forms = (target, f"{target}/*", f"{target}-*")
        hits = [job for job in jobs if any(fnmatch.filter(job.targets, form) for form in forms)]
        if not hits:
            names = [name for job in jobs for name in job.targets]
            raise ValueError(f"the grid has no target {unknown_name(target, names)}")
        chosen |= {job.name for job in hits}
    for job in reversed(jobs):  # which come after the jobs they need
        chosen.update(job.needs if job.name in chosen else ())
    return [job for job in jobs if job.name in chosen or not only]


def folders(job: Job, runs_dir: Path) -> list[Path]:
    """Return the folders of a job's members."""
    if job.stage == "baselines":
        return [c.folder(runs_dir, name) for name in results.BASELINES for c in job.configs]
    return [config.folder(runs_dir) for config in job.configs]


def is_finished(job: Job, runs_dir: Path) -> bool:
    """Return whether all outputs of a job are on disk."""
    if not job.configs:
        return (runs_dir / "workflow" / "finished" / job.name).exists()
    return all(map(training.is_finished, 2 * job.configs, folders(job, runs_dir)))
