"""The grid as jobs: what it asks for, what it costs, and which jobs are finished."""

import shutil
from collections import Counter

import grid
import pandas as pd
import pytest
import yaml
from grid import check, main, plan
from jobs import Job, folders, is_finished, read, select

from belib import paths, results, runs
from belib.config import OfflineConfig, PretrainConfig, scales
from belib.cost import Cost
from belib.results import PAPER_TABLE_1

ALPHAS = [0.2, 0.5, 0.7, 0.9, 1.5, 2.0, 3.0, 5.0]
WALKER = {"domain": "walker", "objective": ["shannon", "rnd"]}
STAND = {"domain": "walker", "task": "walker_stand", "algorithm": "td3"}


def of(jobs, stage):
    return [job for job in jobs if job.stage == stage]


def members(jobs, stage):
    return [config for job in of(jobs, stage) for config in job.configs]


def test_the_papers_grid_has_its_datasets():
    collected = members(read("paper"), "collect")
    assert {c.task for c in collected if c.objective == "task"} == set(PAPER_TABLE_1.index)
    steps = Counter(c.num_steps for c in collected if c.objective not in ("random", "task"))
    assert steps == {500_000: 38, 3_000_000: 2}
    walker = [c for c in collected if c.domain == "walker"]
    assert [c.alpha for c in walker if c.objective == "behavioral"] == ALPHAS
    orders = [c.q for c in walker if c.objective == "renyi"]
    assert orders == [0.2, 0.5, 0.7, 0.9, 1.1, 2.0, 3.0, 5.0]


def test_the_papers_grid_has_its_1275_policies():
    """17 datasets x 5 tasks x 3 algorithms x 5 seeds."""
    policies = members(read("paper"), "offline")
    updates = {c.num_steps for c in policies if c.dataset == "shannon-long-s0"}
    assert updates == {200_000}  # the paper's ablation, with its 100,000 on the way
    policies = [c for c in policies if c.dataset != "random-s0"]
    assert len(policies) == len(set(policies)) == 1275
    for task in PAPER_TABLE_1.index:
        own = [c for c in policies if c.task == task]
        assert {c.algorithm for c in own} == {"td3", "cql", "crr"}
        assert {c.seed for c in own} == set(range(5))
        kinds = Counter(name.split("-")[0] for name in {c.dataset for c in own})
        assert kinds == {"behavioral": 8, "renyi": 5, "shannon": 2, "rnd": 1, "smm": 1}


@pytest.mark.parametrize("scale", scales("grid"))
def test_jobs_come_after_what_they_need_and_have_different_names(scale):
    before = set()
    for job in read(scale):
        assert job.name not in before
        assert before.issuperset(job.needs)
        runs.members(job.configs or [PretrainConfig()])
        before.add(job.name)


def test_datasets_of_one_line_are_collected_together_in_even_groups():
    jobs = of(read("laptop"), "collect")
    alphas = [[c.alpha for c in j.configs] for j in jobs if "walker/behavioral-0.2-s0" in j.name]
    assert alphas == [ALPHAS[:4]]  # 8 of them, of which at most 7 together


@pytest.fixture
def own_grid(tmp_path, monkeypatch):
    """Makes `params/grid.own.yaml` in a project of its own and reads it."""

    def make(**content):
        folder = tmp_path / "params"
        folder.mkdir(exist_ok=True)
        for stage in ("04_pretrain", "05_offline_rl"):
            shutil.copy(paths.ROOT / "params" / f"{stage}.smoke.yaml", folder / f"{stage}.own.yaml")
        (folder / "grid.own.yaml").write_text(yaml.safe_dump(content))
        monkeypatch.setattr(paths, "PARAMS", folder)
        return read("own")

    return make


def test_lines_expand_and_entries_add_members_to_a_job(own_grid):
    run = {**STAND, "task": ["walker_run", "walker_stand"], "seed": 1, "dataset": "shannon-s1"}
    jobs = own_grid(
        datasets=[{**WALKER, "seeds": 2}, {"domain": "cheetah", "objective": "shannon"}],
        together=8,
        offline=[{**STAND, "seeds": 2, "dataset": "shannon-*"}, run],
    )
    names = ["walker/shannon-s0+1", "walker/rnd-s0+1", "cheetah/shannon-s0"]
    assert [job.name for job in of(jobs, "collect")] == [f"collect/{name}" for name in names]
    assert not of(jobs, "coverage")  # this scale has no sizes of maps
    first, second = of(jobs, "offline")
    assert first.name == "offline/walker/shannon-s0/td3"
    assert first.needs == second.needs == ("collect/walker/shannon-s0+1",)
    pairs = [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 1)]
    assert [(c.task, c.seed) for c in second.configs] == pairs
    (baselines,) = of(jobs, "baselines")
    assert [(c.task, c.seed) for c in baselines.configs] == pairs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"offline": [{**STAND, "task": "quadruped_walk"}]},
            "grid.own.yaml: offline, entry 1: task must be one of walker_stand, .*, got 'quadr",
        ),
        (
            {"offline": [{**STAND, "dataset": "shanon-s0"}]},
            r"entry 1: dataset must be of the grid's, got 'shanon-s0' \(nearest: 'shannon-s0'\)",
        ),
        ({"datasets": [WALKER, WALKER]}, "datasets, line 2: walker/shannon-s0 is there twice"),
        ({"datasets": [{**WALKER, "alhpa": 1.0}]}, "line 1: .* no field 'alhpa' .nearest: 'alpha'"),
        ({"datasets": [{**WALKER, "alpha": -1.0}]}, "line 1: alpha must be positive"),
        ({"datasets": [{**WALKER, "domain": "wlaker"}]}, "no domain 'wlaker' .nearest: 'walker'"),
        ({"datasets": []}, r"grid.own.yaml: datasets must have a line or more, got \[\]"),
        ({"together": 0}, "grid.own.yaml: together must be at least 1, got 0"),
        ({"datasets": WALKER}, "grid.own.yaml: datasets should be a list of lines .* got {'dom"),
        ({"offline": [["walker"]]}, "grid.own.yaml: offline should be a list of lines"),
        ({"datasets": [{**WALKER, "seeds": 0}]}, "line 1: seeds must be at least 1, got 0"),
        ({"offline": [{**STAND, "dataset": []}]}, "entry 1: dataset must have a name or pattern"),
        ({"ofline": []}, "grid.own.yaml: there is no entry 'ofline' .nearest: 'offline'"),
        (
            {"offline": [{**STAND, "seeds": 1}, {**STAND, "seeds": 1, "batch_size": 9}]},
            "entry 2: offline/walker/shannon-s0/td3, walker_stand, seed 0 is there twice",
        ),
    ],
)
def test_a_wrong_entry_is_refused_by_its_place(own_grid, content, message):
    with pytest.raises((ValueError, TypeError), match=message):
        own_grid(**{"datasets": [WALKER], **content})


def test_sizes_of_maps_are_checked_before_anything_runs(own_grid, tmp_path):
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "06_coverage_plots.own.yaml").write_text("size: 10\nsize: 20\n")
    with pytest.raises(ValueError, match=r"plots\.own\.yaml: 'size' is there twice"):
        own_grid(datasets=[WALKER])


def test_an_unknown_scale_or_target_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"scale must be one of .* laptop, .*'laptpo'"):
        read("laptpo")
    nearest = "no target 'walker/behavioural-0.5' .nearest: 'walker/behavioral-0.5'"
    with pytest.raises(ValueError, match=nearest):
        select(read("paper"), ["walker/behavioural-0.5"])


def test_a_target_chooses_its_jobs_and_what_they_need():
    jobs = read("paper")

    def chosen(*targets):
        return [job.name for job in select(jobs, targets)]

    name = "walker/behavioral-0.5-s0"
    own = [f"collect/{name}", *(f"offline/{name}/{learner}" for learner in ("td3", "cql", "crr"))]
    assert chosen("walker/behavioral-0.5") == own
    assert chosen(f"offline/{name}/crr") == [own[0], own[3]]
    assert chosen(f"collect/{name}") == own[:1]
    assert len(chosen("walker")) == 24 + 54 + 1 + 1  # baselines and coverage, but no report
    assert len(chosen("*/td3")) == 36 + 36
    assert chosen() == [job.name for job in jobs]
    assert "collect/walker/behavioral-0.2-s0+3" in [
        job.name for job in select(read("laptop"), ["walker/behavioral-0.9"])
    ]  # which collects it with three others


@pytest.fixture
def an_hour(monkeypatch):
    """Every job is estimated to take an hour, 2 GB and 1 GB of disk."""
    monkeypatch.setattr(grid.cost, "estimate", lambda *_, **__: Cost(60.0, 2.0, 1.0))


def test_what_is_there_is_finished_whoever_made_it(make_dataset, tmp_path, an_hour):
    config = make_dataset().config()
    longer = PretrainConfig.from_dict({**vars(config), "num_steps": 1000})
    jobs = [
        Job(name=name, configs=(c,)) for name, c in (("collect/a", config), ("collect/b", longer))
    ]
    jobs.append(Job(name="report", needs=("collect/a", "collect/b")))
    (tmp_path / "workflow" / "finished").mkdir(parents=True)
    (tmp_path / "workflow" / "finished" / "report").touch()
    table = plan(jobs, tmp_path)
    assert table["finished"].tolist() == [True, False, False]  # the report is made again
    assert table["minutes"].tolist() == [0, 60, 0.5]
    assert table["needs"].tolist() == ["", "", "collect/b"]
    edited = PretrainConfig.from_dict({**vars(config), "batch_size": 77})
    with pytest.raises(ValueError, match=r"another configuration .batch_size: 1024 there, 77 here"):
        check([Job(name="collect/a", configs=(edited,))], tmp_path, "local")


def test_policies_are_finished_by_their_results(tmp_path):
    config = OfflineConfig(scale="test", num_steps=30, dataset="random-s0")
    job = Job(name="offline/walker/random-s0/td3", configs=(config,))
    (folder,) = folders(job, tmp_path)
    assert not is_finished(job, tmp_path)
    for step in (20, 30):
        paths.writable_folder(folder)
        values = {"return": 1.0, "seed": 0, "parameter": 0.5, "episodes": 1, "status": "ok"}
        rows = [dict.fromkeys(results.COLUMNS, "own") | values | {"step": n} for n in (10, step)]
        results.write(folder / "results.csv", pd.DataFrame(rows).assign(upright=1.0))
        assert is_finished(job, tmp_path) == (step == 30)


def test_the_plan_says_jobs_hours_and_disk(tmp_path, an_hour, capsys, monkeypatch):
    """A disk that is too small is said here, and refused by `run`."""
    free = shutil.disk_usage(tmp_path)._replace(free=2 * 10**9)
    monkeypatch.setattr(grid.shutil, "disk_usage", lambda _: free)
    words = ["--scale", "smoke", "--cores", "2", "--runs-dir", str(tmp_path / "runs")]
    assert main(["plan", *words]) == 0
    told = capsys.readouterr().out
    assert "11 jobs, 0 of them finished. The rest takes about 9.1 hours of a core, 4.5 on 2" in told
    assert "needs about 9.2 GB for these jobs and" in told
    assert not list(tmp_path.iterdir())
    assert main(["run", *words]) == 2
    assert "has 2.0 GB free: choose another runs_dir" in capsys.readouterr().err


def test_a_misspelt_option_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--scale", "smoke", "--oly", "walker"])
    assert "unrecognized arguments: --oly walker" in capsys.readouterr().err
