"""The grid as jobs: what it asks for, what it costs, and what of it is there."""

import shutil
from collections import Counter

import pandas as pd
import pytest
import yaml

from belib import grid, paths, results, runs
from belib.config import OfflineConfig, PretrainConfig, scales
from belib.cost import Cost
from belib.grid import Job, engine, plan, work
from belib.grid.__main__ import main
from belib.results import PAPER_TABLE_1

ALPHAS = [0.2, 0.5, 0.7, 0.9, 1.5, 2.0, 3.0, 5.0]


def of(jobs, stage):
    return [job for job in jobs if job.stage == stage]


def members(jobs, stage):
    """Of a stage's jobs, but for those that learn nothing."""
    return [c for job in of(jobs, stage) for c in job.configs if not work.is_baselines(job)]


def test_the_papers_grid_has_its_datasets():
    collected = members(grid.read("paper"), "collect")
    online = [config for config in collected if config.objective == "task"]
    assert {config.task for config in online} == set(PAPER_TABLE_1.index)
    collected = [config for config in collected if config.objective != "task"]
    steps = Counter(config.num_steps for config in collected if config.objective != "random")
    assert steps == {500_000: 38, 3_000_000: 2}
    walker = [config for config in collected if config.domain == "walker"]
    assert len({config.dataset for config in walker}) == len(walker) == 21
    assert [config.alpha for config in walker if config.objective == "behavioral"] == ALPHAS
    orders = [config.q for config in walker if config.objective == "renyi"]
    assert orders == [0.2, 0.5, 0.7, 0.9, 1.1, 2.0, 3.0, 5.0]


def test_the_papers_grid_has_its_1275_policies():
    """17 datasets x 5 tasks x 3 algorithms x 5 seeds."""
    policies = members(grid.read("paper"), "offline")
    updates = {config.num_steps for config in policies if config.dataset == "shannon-long-s0"}
    assert updates == {200_000}  # the paper's ablation, with its 100,000 on the way
    assert sum(config.dataset == "random-s0" for config in policies) == 5 * 3 * 5
    policies = [config for config in policies if config.dataset != "random-s0"]
    assert len(policies) == len(set(policies)) == 1275 == 17 * 5 * 3 * 5
    assert {config.task for config in policies} == set(PAPER_TABLE_1.index)
    for task in PAPER_TABLE_1.index:
        own = [config for config in policies if config.task == task]
        assert {config.algorithm for config in own} == {"td3", "cql", "crr"}
        assert {config.seed for config in own} == set(range(5))
        names = {config.dataset for config in own}
        assert len(names) == 17
        kinds = Counter(name.split("-")[0] for name in names)
        assert kinds == {"behavioral": 8, "renyi": 5, "shannon": 2, "rnd": 1, "smm": 1}


@pytest.mark.parametrize("scale", scales("grid"))
def test_jobs_come_after_what_they_need_and_have_names_of_their_own(scale):
    known = set()
    for job in grid.read(scale):
        assert job.stage in grid.STAGES
        assert job.name not in known
        assert known.issuperset(job.needs)
        runs.check_members(job.configs or [PretrainConfig()])
        known.add(job.name)


def test_datasets_of_one_line_are_collected_together_in_even_groups():
    jobs = of(grid.read("laptop"), "collect")
    alphas = [
        [c.alpha for c in job.configs] for job in jobs if "walker/behavioral-0.2-s0" in job.name
    ]
    assert alphas == [ALPHAS[:4]]  # 8 of them, of which at most 7 together
    assert {config.scale for config in members(jobs, "collect")} == {"laptop"}
    rms = [c for c in members(jobs, "collect") if c.intrinsic_reward_scale == "rms"]
    assert [c.dataset for c in rms] == [f"behavioral-{a}-rms-s0" for a in ("0.5", "2", "5")]


@pytest.fixture
def own_grid(tmp_path, monkeypatch):
    """Makes `params/grid.own.yaml` in a project of its own and reads it."""

    def read(**content):
        for stage in ("04_pretrain", "05_offline_rl"):
            target = tmp_path / "params" / f"{stage}.own.yaml"
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                shutil.copy(paths.PARAMS / f"{stage}.smoke.yaml", target)
        (tmp_path / "params" / "grid.own.yaml").write_text(yaml.safe_dump(content))
        with monkeypatch.context() as patch:
            patch.setattr(paths, "PARAMS", tmp_path / "params")
            return grid.read("own")

    return read


WALKER = {"domain": "walker", "objective": ["shannon", "rnd"]}
STAND = {"domain": "walker", "task": "walker_stand", "algorithm": "td3"}


def test_lines_expand_and_entries_add_members_to_a_job(own_grid):
    jobs = own_grid(
        datasets=[{**WALKER, "seeds": 2}, {"domain": "cheetah", "objective": "shannon"}],
        together=8,
        offline=[
            {**STAND, "seeds": 2, "dataset": "shannon-*"},
            {
                **STAND,
                "task": ["walker_run", "walker_stand"],
                "seeds": [1],
                "dataset": "shannon-s1",
            },
        ],
    )
    assert not of(jobs, "coverage")  # which this scale has no sizes for
    names = ["walker/shannon-s0+1", "walker/rnd-s0+1", "cheetah/shannon-s0"]
    assert [job.name for job in of(jobs, "collect")] == [f"collect/{name}" for name in names]
    first, second, baselines = of(jobs, "offline")
    found = [(config.task, config.seed) for config in baselines.configs]
    assert found == [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 1)]
    assert first.name == "offline/walker/shannon-s0/td3"
    assert first.needs == second.needs == ("collect/walker/shannon-s0+1",)
    found = [(config.task, config.seed) for config in second.configs]
    assert found == [("walker_stand", 0), ("walker_stand", 1), ("walker_run", 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"offline": [{**STAND, "task": "quadruped_walk"}]},
            r"grid.own.yaml, offline, entry 1: task must be one of the domain walker \(walker_stand"
            r".*\), got 'quadruped_walk'",
        ),
        (
            {"offline": [{**STAND, "dataset": "shanon-s0"}]},
            r"entry 1: dataset must be of the grid's, got 'shanon-s0' \(nearest: 'shannon-s0'\)",
        ),
        ({"datasets": [WALKER, WALKER]}, "datasets, line 2: walker/shannon-s0 is there twice"),
        (
            {"datasets": [{**WALKER, "alhpa": 1.0}]},
            "datasets, line 1: PretrainConfig has no field 'alhpa' .nearest: 'alpha'",
        ),
        ({"datasets": [{**WALKER, "alpha": -1.0}]}, "line 1: alpha must be positive"),
        ({"datasets": [{**WALKER, "domain": "wlaker"}]}, "no domain 'wlaker' .nearest: 'walker'"),
        ({"datasets": []}, r"grid.own.yaml must list datasets, got \[\]"),
        ({"together": 0}, "grid.own.yaml: together must be at least 1, got 0"),
        ({"together": True}, "grid.own.yaml: together should be int, got True"),
        ({"datasets": WALKER}, "grid.own.yaml: datasets should be a list of lines as .* got {'dom"),
        ({"offline": [["walker"]]}, "grid.own.yaml: offline should be a list of lines as"),
        ({"datasets": [{**WALKER, "times": [1, "2"]}]}, "line 1: times should be int, got '2'"),
        ({"datasets": [{**WALKER, "seeds": 0}]}, "line 1: seeds must be at least 1, got 0"),
        ({"offline": [{**STAND, "seed": []}]}, "entry 1: seed must have a value or more"),
        ({"offline": [{**STAND, "dataset": []}]}, "entry 1: dataset must have a name or pattern"),
        ({"offline": [{**STAND, "dataset": 5}]}, r"entry 1: dataset\[0\] should be str, got 5"),
        ({"ofline": []}, "grid.own.yaml has no entry 'ofline' .nearest: 'offline'"),
        (
            {"offline": [{**STAND, "seeds": 1}, {**STAND, "seeds": 1, "batch_size": 9}]},
            "entry 2: offline/walker/shannon-s0/td3, walker_stand, seed 0 is there twice",
        ),
    ],
)
def test_a_wrong_entry_is_refused_by_its_place(own_grid, content, message):
    with pytest.raises((ValueError, TypeError), match=message):
        own_grid(**{"datasets": [WALKER], **content})


def test_a_name_that_is_there_twice_is_refused_before_anything_runs(own_grid, tmp_path):
    """Of the sizes of maps, too, which only papermill reads otherwise."""
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "06_coverage_plots.own.yaml").write_text("size: 10\nsize: 20\n")
    with pytest.raises(ValueError, match=r"plots\.own\.yaml, line 2: 'size' is there twice"):
        own_grid(datasets=[WALKER])


def test_an_unknown_scale_or_target_is_refused_with_the_nearest():
    with pytest.raises(
        ValueError, match=r"scale must be one of .*, got 'laptpo' .nearest: 'laptop'"
    ):
        grid.read("laptpo")
    nearest = "no target 'walker/behavioural-0.5' .nearest: 'walker/behavioral-0.5'"
    with pytest.raises(ValueError, match=nearest):
        grid.select(grid.read("paper"), ["walker/behavioural-0.5"])


def test_tasks_may_have_learners_of_their_own(own_grid):
    """What policies must beat is evaluated for all of them, whoever learns."""
    jobs = own_grid(
        datasets=[{"objective": "random"}],
        offline=[
            {"task": "walker_stand", "algorithm": "td3"},
            {"task": "walker_walk", "algorithm": "crr"},
        ],
    )
    (baselines,) = [job for job in jobs if work.is_baselines(job)]
    assert {config.task for config in baselines.learning} == {"walker_stand", "walker_walk"}
    runs.check_members(baselines.learning)


def test_a_learner_is_named_without_what_it_has_of_its_own(own_grid):
    jobs = own_grid(
        datasets=[{"objective": "random"}],
        offline=[{"algorithm": "cql", "convention": "standard"}, {"algorithm": "bc"}],
    )
    names = [job.name for job in grid.select(jobs, ["*/cql"])]
    assert names == ["collect/walker/random-s0", "offline/walker/random-s0/cql-standard"]


def test_a_target_chooses_its_jobs_and_what_they_need():
    jobs = grid.read("paper")

    def chosen(*targets):
        return [job.name for job in grid.select(jobs, targets)]

    name = "walker/behavioral-0.5-s0"
    own = [f"collect/{name}", *(f"offline/{name}/{each}" for each in ("td3", "cql", "crr"))]
    assert chosen("walker/behavioral-0.5") == own
    assert chosen(f"offline/{name}/crr") == [own[0], own[3]]
    assert chosen(f"collect/{name}") == own[:1]
    assert len(chosen("walker")) == 24 + 54 + 1 + 1  # baselines and coverage, but no report
    assert len(chosen("*/td3")) == 36 + 36
    assert chosen() == [job.name for job in jobs]
    assert "collect/walker/behavioral-0.2-s0+3" in [
        job.name for job in grid.select(grid.read("laptop"), ["walker/behavioral-0.9"])
    ]  # which collects it with three others


@pytest.fixture
def an_hour(monkeypatch):
    """Every job is estimated to take an hour, 2 GB and 1 GB of disk."""
    monkeypatch.setattr(plan.cost, "estimate", lambda *_, **__: Cost(60.0, 2.0, 1.0))


@pytest.fixture
def random_job(make_dataset):
    """The job that collects a dataset which is there; the dataset."""
    dataset = make_dataset()
    return Job(name="collect/walker/random-s0", configs=(dataset.config(),)), dataset


def test_what_is_there_is_finished_whoever_made_it(random_job, tmp_path, an_hour):
    job, dataset = random_job
    longer = PretrainConfig.from_dict({**vars(job.configs[0]), "num_steps": 1000})
    other = Job(name="collect/walker/random-long", configs=(longer,))
    table = plan.costs([job, other], tmp_path)
    assert table["finished"].tolist() == [True, False]
    assert table["minutes"].tolist() == [0, 60]
    engine.mark([job, other], tmp_path)
    assert work.marker(job, tmp_path).stat().st_mtime == pytest.approx(
        (dataset.folder / "card.json").stat().st_mtime
    )
    assert not work.marker(other, tmp_path).exists()


def test_a_marker_without_its_dataset_is_not_believed(random_job, tmp_path, capsys):
    job, dataset = random_job
    engine.mark([job], tmp_path)
    (dataset.folder / "card.json").unlink()
    engine.mark([job], tmp_path)
    assert not work.marker(job, tmp_path).exists()
    assert "collect/walker/random-s0 is marked as finished and is not" in capsys.readouterr().out
    assert len(dataset.files) == len(list((dataset.folder / "buffer").iterdir()))


def test_edited_params_are_refused_by_their_names(random_job, tmp_path):
    job, _ = random_job
    edited = PretrainConfig.from_dict({**vars(job.configs[0]), "batch_size": 77})
    with pytest.raises(ValueError, match=r"another configuration .batch_size: 1024 there, 77 here"):
        work.check([Job(name=job.name, configs=(edited,))], tmp_path)


def test_the_plan_says_jobs_hours_and_disk(tmp_path, an_hour):
    jobs = grid.read("smoke")
    table = plan.costs(jobs, tmp_path)
    total = plan.summary(table).set_index("stage").loc["total"]
    notebooks = [job for job in jobs if not job.configs]
    assert total["jobs"] == len(jobs) == 9 + len(notebooks)
    assert 9 < total["hours"] < 9 + 0.1 * len(notebooks)
    assert total["members"] == 4 + 18 + 4
    assert not list(tmp_path.iterdir())


def test_a_misspelt_option_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--scale", "smoke", "--oly", "walker"])
    assert "unrecognized arguments: --oly walker" in capsys.readouterr().err


def test_a_disk_too_small_is_refused_with_the_numbers(tmp_path, an_hour, monkeypatch, capsys):
    """The plan says them, too, and goes on: it writes nothing."""
    table = plan.costs(grid.read("smoke"), tmp_path / "runs")
    free = shutil.disk_usage(tmp_path)._replace(free=2 * 10**9)
    monkeypatch.setattr(plan.shutil, "disk_usage", lambda _: free)
    with pytest.raises(OSError, match=r"needs about 9\.\d GB .* has 2\.0 GB free"):
        plan.check_disk(table, tmp_path / "runs")
    assert main(["plan", "--runs-dir", str(tmp_path / "runs")]) == 0
    assert "has 2.0 GB free" in capsys.readouterr().out


def test_a_written_plan_gives_back_its_jobs_and_resources(tmp_path, an_hour):
    jobs = [job for job in grid.read("smoke") if job.configs]
    paths.writable_folder(work.workflow_folder(tmp_path))
    plan.write(jobs, plan.costs(jobs, tmp_path), tmp_path, gpus=1, checkpoint_minutes=2.0)
    for job in jobs:
        found, content = plan.read_job(job.name, tmp_path)
        assert found == job
        assert content["checkpoint_minutes"] == 2.0
        resources = content["jobs"][job.name]["resources"]
        assert resources["gpu"] == (job.name != "collect/walker/random-s0")
        assert resources["runtime"] == 3 * 60
        assert resources["mem_mb"] == 1.5 * 2000


def test_offline_jobs_are_finished_by_their_results(tmp_path):
    config = OfflineConfig(scale="test", num_steps=30, dataset="random-s0")
    job = Job(name="offline/walker/random-s0/td3", configs=(config,))
    (folder,) = work.folders(job, tmp_path)
    assert not work.finished(job, tmp_path)
    for step in (20, 30):
        paths.writable_folder(folder)
        values = {"return": 1.0, "seed": 0, "parameter": 0.5, "episodes": 1, "status": "ok"}
        rows = [dict.fromkeys(results.COLUMNS, "own") | values | {"step": n} for n in (10, step)]
        results.write(folder / "results.csv", pd.DataFrame(rows).assign(upright=1.0))
        assert work.finished(job, tmp_path) == (step == 30)
