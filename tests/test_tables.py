"""Results do not depend on the form of a table or its file; ambiguous tables are refused."""

import re
import runpy

import numpy as np
import pandas as pd
import pytest
import synthetic
from test_figures_returns import RECIPES, made_up

from belib import figures, gather, results, study
from belib.results import tables

EDITS = {
    "index repeats": lambda t: t.sample(frac=1, random_state=3).set_axis([0] * len(t)),
    "joined twice": lambda t: pd.concat([t, t.sample(frac=0.5, random_state=0)]),
    "columns": lambda t: t[sorted(t, reverse=True)].assign(note="mine"),
    "floats": lambda t: t.astype(dict.fromkeys(t.select_dtypes("int"), float)),
    "text": lambda t: t.astype(dict.fromkeys({"seed", "step"} & {*t}, str)),
    "objects": lambda t: t.astype(object),
    "categories": lambda t: t.astype(dict.fromkeys(t.select_dtypes("str"), "category")),
    "nullable": lambda t: t.convert_dtypes(),
    "index of names": lambda t: t.set_index([t.columns[0], t.columns[1]], drop=False),
}


def learnt(table):
    return table[~table["algorithm"].isin(results.BASELINES)]


STATISTICS = {
    "evaluations": results.evaluations,
    "summary": results.summary,
    "summary of best": lambda t: results.summary(t, "best"),
    "improvement": lambda t: results.improvement(learnt(t), "dataset", within=("algorithm",)),
    "table 1": results.table_1,
}


def test_a_name_may_be_null_and_only_an_empty_field_is_missing(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("name,number\nnull,1\nNA,\n1e3,nan\n")
    table = tables.read_csv(file, text=["name"], names=["name"], numbers=["number"])
    assert table["name"].tolist() == ["null", "NA", "1e3"]
    assert table["number"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_do_not_depend_on_the_form_of_the_table(name):
    table = made_up(("walker_run", "walker_stand"), recipes=RECIPES[2:])
    expected = STATISTICS[name](table)
    for kind, edit in EDITS.items():
        result = STATISTICS[name](edit(table))[list(expected)]
        pd.testing.assert_frame_equal(result, expected, check_dtype=False, obj=kind)


@pytest.mark.parametrize("kind", ["index repeats", "joined twice", "floats"])
def test_the_units_of_a_study_do_not_depend_on_the_form_of_its_tables(kind, tmp_path):
    made, parts = synthetic.example(), ("offline", "datasets", "coverage")

    def units(**tables):
        synthetic.write(made._replace(**tables), tmp_path)
        return study.units(gather.load(tmp_path))

    edited = units(**{name: EDITS[kind](getattr(made, name)) for name in parts})
    pd.testing.assert_frame_equal(edited, units(), check_dtype=False)
    with pytest.raises(ValueError, match=r"one value for domain walker, dataset \S+-s0"):
        units(datasets=pd.concat([made.datasets, made.datasets.assign(steps=7)]))


REFUSED = [
    (lambda t: t[:0], "table must have rows, got none"),
    (
        lambda t: pd.concat([t, t.assign(**{"return": 0.5})]),
        r"one value for task walker_stand, .* seed 0, step 10, got another: return 0.5",
    ),
    (lambda t: t.drop(columns="return"), "must have the columns return, got domain"),
    (lambda t: pd.concat([t, t[["return"]]], axis=1), "columns with different names"),
    (lambda t: t.assign(**{"return": "high"}), "return must be numbers: .*.high."),
    (lambda t: t.assign(**{"return": np.inf}), "return must be finite, or missing, got inf"),
    (lambda t: t.assign(seed=np.nan), "seed must be whole numbers, got nan"),
    (lambda t: t.assign(step="0.5"), "step must be whole numbers, got 0.5"),
    (lambda t: t.assign(task=None), "task must be given in every row"),
    (lambda t: pd.concat([t, t.assign(scale="paper", seed=7)]), "must have one scale, got .'paper"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_ambiguous_tables_are_refused(change, message):
    table = change(learnt(made_up(learners=("td3",))))
    for function in (results.summary, figures.returns.learning_curves):
        with pytest.raises(ValueError, match=message):
            function(table)


@pytest.fixture
def two(tmp_path):
    """Write two `results.csv` below a folder with a difficult name."""
    place = tmp_path / "my [runs] {3} *" / "offline" / "walker"
    for name in "ab":
        (place / name).mkdir(parents=True)
        part = learnt(made_up(("walker_run",), ("td3",), [{"objective": "rnd"}], seeds=2))
        part.assign(dataset=name).to_csv(place / name / "results.csv", index=False)
    file = place / "a" / "results.csv"
    return place.parents[1], file, file.read_bytes()


def test_files_of_any_editor_are_read(two):
    runs_dir, file, content = two
    edits = {
        "no last end of line": lambda t: t.rstrip(b"\n"),
        "ends of lines": lambda t: b"\xef\xbb\xbf" + t.replace(b"\n", b"\r\n"),
        "empty lines": lambda t: t + b"\n\n",
        "quotes": lambda t: re.sub(rb"walker_run", b'"walker_run"', t),
        "digits": lambda t: t.replace(b",none,", b",12345678e012,").replace(b",a,", b",007,"),
    }
    for kind, edit in edits.items():
        file.write_bytes(edit(content))
        table = results.collect(runs_dir)
        dataset, revision = ("007", "12345678e012") if kind == "digits" else ("a", "none")
        assert table["dataset"].unique().tolist() == [dataset, "b"], kind
        assert table["revision"].unique().tolist() == list(dict.fromkeys([revision, "none"])), kind
        assert table["return"].tolist() == [110, 120, 120, 130] * 2, kind


def test_damaged_files_are_named(two, monkeypatch):
    runs_dir, file, content = two
    monkeypatch.setattr("sys.argv", ["results", str(runs_dir)])
    for change, message in (
        (lambda t: t[:-50], "as many fields as there are headings"),
        (lambda t: t.replace(b"120.0", b"120,0", 1), "as many fields as there are headings"),
        (lambda t: t.replace(b"return", b"reward"), "must have the columns return"),
        (lambda t: t.partition(b"\n")[2], "must have the columns domain, task"),
        (lambda t: t.replace(b"120.0", b"high", 1), "return must be numbers: .*.high."),
        (lambda t: t.replace(b"walker_run", b'"walker_run', 1), "unexpected end"),
        (lambda t: t.decode().encode("utf-16"), "can't decode"),
    ):
        file.write_bytes(change(content))
        with pytest.raises(SystemExit, match=rf"{re.escape(str(file))}: .*{message}"):
            runpy.run_module("belib.results", run_name="__main__")


def test_damaged_files_of_a_study_are_named(tmp_path):
    for name, change, message in (
        ("datasets.csv", lambda t: t.replace(",50000,", ",many,", 1), "steps must be numbers"),
        ("coverage.csv", lambda t: "", "No columns"),
        ("provenance.json", lambda t: "[]", "must hold a JSON object with scale"),
        ("provenance.json", lambda t: t[:-9], "must hold .*JSON"),
        ("provenance.json", lambda t: '{"scale": "x"}', "learning"),
    ):
        synthetic.write(synthetic.example(), tmp_path)
        file = tmp_path / name
        file.write_text(change(file.read_text()))
        with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))}.* {message}"):
            gather.load(tmp_path)


def test_numbers_are_read_to_the_bit(tmp_path):
    x = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-30, 30).repeat(17)[:1000]
    (tmp_path / "x.csv").write_text(pd.DataFrame({"x": x}).to_csv(index=False))
    assert (results.tables.read_csv(tmp_path / "x.csv", numbers=["x"])["x"].to_numpy() == x).all()
