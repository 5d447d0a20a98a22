"""The grid as jobs: what it asks for, what it costs, and which jobs are finished."""

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from grid import main, plan
from jobs import Job, folders, is_finished, read, select

from belib import cost, paths, results, runs
from belib.config import OfflineConfig, PretrainConfig
from belib.figures.style import ALPHAS, QS

WALKER = {"domain": "walker", "objective": ["shannon", "rnd"]}
STAND = {"domain": "walker", "task": "walker_stand", "algorithm": "td3"}


def of(jobs, stage):
    return [job for job in jobs if job.stage == stage]


def members(jobs, stage):
    return [config for job in of(jobs, stage) for config in job.configs]


def test_the_papers_grid_has_its_datasets_and_1275_policies():
    """17 datasets x 5 tasks x 3 algorithms x 5 seeds, and an ablation."""
    jobs = read("paper")
    collected, policies = members(jobs, "collect"), members(jobs, "offline")
    assert {c.task for c in collected if c.objective == "task"} == set(results.PAPER_TABLE_1.index)
    steps = Counter(c.num_steps for c in collected if c.objective not in ("random", "task"))
    assert steps == {500_000: 38, 3_000_000: 2}
    assert {c.alpha for c in collected if c.objective == "behavioral"} == set(ALPHAS)
    assert {c.q for c in collected if c.objective == "renyi"} == set(QS)
    policies = [c for c in policies if c.dataset != "random-s0"]
    assert len(policies) == len(set(policies)) == 1275
    kinds = Counter((c.task, c.algorithm, c.dataset.split("-")[0]) for c in policies)
    numbers = {"behavioral": 8, "renyi": 5, "shannon": 2, "rnd": 1, "smm": 1}
    learners, tasks = ("td3", "cql", "crr"), results.PAPER_TABLE_1.index
    assert kinds == {(t, a, k): 5 * n for t in tasks for a in learners for k, n in numbers.items()}


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper", "gate", "study"])
def test_jobs_come_after_what_they_need_and_have_different_names(scale):
    before = set()
    for job in read(scale):
        assert job.name not in before
        assert before.issuperset(job.needs)
        runs.members(job.configs or [PretrainConfig()])
        before.add(job.name)


@pytest.fixture
def own_grid(tmp_path, monkeypatch):
    """Makes `params/grid.own.yaml` in a project of its own and reads it."""

    def make(**content):
        folder = paths.make_folder(tmp_path / "params")
        for stage in ("04_pretrain", "05_offline_rl"):
            shutil.copy(paths.ROOT / "params" / f"{stage}.smoke.yaml", folder / f"{stage}.own.yaml")
        (folder / "grid.own.yaml").write_text(yaml.safe_dump(content))
        monkeypatch.setattr(paths, "PARAMS", folder)
        return read("own")

    return make


def test_lines_expand_and_entries_add_members_to_a_job(own_grid):
    run = {**STAND, "task": ["walker_run", "walker_stand"], "seed": [1], "dataset": "shannon-s1"}
    jobs = own_grid(
        datasets=[{**WALKER, "seeds": 5}, {"domain": "cheetah", "objective": "shannon"}],
        together=4,  # in even parts
        offline=[{**STAND, "seeds": 2, "dataset": "shannon-*"}, run],
    )
    names = [f"walker/{name}" for name in ("shannon-s0+2", "shannon-s3+1", "rnd-s0+2", "rnd-s3+1")]
    collected = [job.name for job in of(jobs, "collect")]
    assert collected == [f"collect/{name}" for name in (*names, "cheetah/shannon-s0")]
    assert not of(jobs, "coverage")  # this scale has no sizes of maps
    first, second, *_ = of(jobs, "offline")
    assert first.name == "offline/walker/shannon-s0/td3"
    assert first.needs == second.needs == ("collect/walker/shannon-s0+2",)
    pairs = [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 1)]
    assert [(c.task, c.seed) for c in second.configs] == pairs
    (baselines,) = of(jobs, "baselines")
    assert [(c.task, c.seed) for c in baselines.configs] == pairs


def test_a_wrong_entry_is_refused_by_its_place(own_grid):
    for content, message in (
        ({"offline": [{**STAND, "task": "run"}]}, "own.yaml: offline, entry 1: task must be"),
        ({"offline": [{**STAND, "dataset": "rn-s0"}]}, r"got 'rn-s0' \(nearest: 'rnd-s0'"),
        ({"datasets": [WALKER, WALKER]}, "datasets, line 2: walker/shannon-s0 is there twice"),
        ({"datasets": [{**WALKER, "domain": "wlaker"}]}, "no domain 'wlaker' .nearest: 'walker'"),
        ({"together": 0}, "grid.own.yaml: together must be at least 1, got 0"),
        ({"ofline": []}, "grid.own.yaml: .* unexpected keyword argument 'ofline'"),
        ({"offline": [STAND, {**STAND, "batch_size": 9}]}, "td3, walker_stand, seed 0 is there tw"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            own_grid(**{"datasets": [WALKER], **content})


def test_a_target_chooses_its_jobs_and_what_they_need():
    jobs = read("paper")

    def chosen(*targets):
        return [job.name for job in select(jobs, targets)]

    name = "walker/behavioral-0.5-s0"
    its = [f"collect/{name}", *(f"offline/{name}/{learner}" for learner in ("td3", "cql", "crr"))]
    assert chosen("walker/behavioral-0.5") == its
    assert chosen(f"offline/{name}/crr") == [its[0], its[3]]
    assert chosen(f"collect/{name}") == its[:1]
    assert len(chosen("walker")) == 24 + 54 + 1 + 1  # baselines and coverage, but no report
    assert len(chosen("*/td3")) == 36 + 36
    assert chosen() == [job.name for job in jobs]
    with pytest.raises(ValueError, match=r"no target 'walker/smn' .nearest: 'walker/smm-s0'"):
        chosen("walker/smn")


def test_what_is_there_is_finished_whoever_made_it(make_dataset, tmp_path, an_hour):
    config = make_dataset().config()
    named = {"collect/a": config, "collect/b": replace(config, num_steps=1000)}
    jobs = [Job(name=name, configs=(config,)) for name, config in named.items()]
    jobs.append(Job(name="report", needs=tuple(named)))
    (paths.make_folder(tmp_path / "workflow" / "finished") / "report").touch()
    table = plan(jobs, tmp_path)
    assert table["finished"].tolist() == [True, False, False]  # the report is made again
    assert table["minutes"].tolist() == [0, 60, 0.5]
    assert table["needs"].tolist() == ["", "", "collect/b"]


def test_learners_need_memory_for_the_steps_of_their_data(own_grid, tmp_path, monkeypatch):
    sizes = []
    estimate = lambda _, *, dataset_steps: sizes.append(dataset_steps) or cost.Cost(1.0, 1.0)  # noqa: E731
    monkeypatch.setattr(cost, "estimate", estimate)
    line = {"domain": "walker", "objective": "shannon", "num_steps": 7_000}
    plan(own_grid(datasets=[line], offline=[{**STAND, "num_steps": 50}])[:2], tmp_path)
    assert sizes == [7_000, 7_000]


@pytest.mark.parametrize("stage", ["offline", "baselines"])
def test_policies_are_finished_by_their_results(tmp_path, stage):
    configs = tuple(OfflineConfig(scale="test", num_steps=30, seed=seed) for seed in (0, 1))
    job = Job(name=f"{stage}/walker", configs=configs)
    for step in (20, 30):
        for folder in folders(job, tmp_path):
            assert not is_finished(job, tmp_path)
            rows = [results.row(configs[0], None, n, np.ones(1), "none") for n in (10, step)]
            pd.DataFrame(rows).to_csv(paths.make_folder(folder) / "results.csv", index=False)
    assert is_finished(job, tmp_path)


def test_the_plan_says_jobs_and_hours(tmp_path, an_hour, capsys):
    assert main(["plan", "--cores", "2", "--runs-dir", str(tmp_path / "runs")]) == 0
    told = capsys.readouterr().out
    assert "11 jobs, 0 finished. The rest takes about 9.1 hours of a core, 4.5 on 2" in told
    assert not list(tmp_path.iterdir())
