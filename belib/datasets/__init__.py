"""Datasets on disk, in ExORL's episode format, with the rewards of all tasks beside them.

    <runs_dir>/datasets/<domain>/<name>/
        buffer/episode_000000_1000.npz      what ExORL reads: arrays of length + 1 rows
        rewards/episode_000000_1000.npz     one array a task, float64, recorded as it was collected
        relabelled/episode_000000_1000.npz  the same, computed later: a cache, which may be removed
        config.yaml  metrics.csv  checkpoint.pt    of a collected dataset
        provenance.json                            of a merged, subsampled or imported one
        card.json

Row 0 of an episode is the reset: its action and rewards are zero and belong to no transition. Row i
is what the i-th action led to. Nothing here changes or deletes an episode. From a shell:
`python -m belib.datasets --help`.
"""

from belib.datasets.card import check_card, is_described, origin, read_card, write_card
from belib.datasets.dataset import Dataset, Transitions, dataset_folder, find_datasets, load
from belib.datasets.derived import import_exorl, merge, subsample
from belib.datasets.episodes import DTYPES, DatasetError, read_episode, write_episode
from belib.datasets.export import export_minari
from belib.datasets.relabelling import relabel, task_rewards
from belib.datasets.validation import Fault, validate

__all__ = [
    "DTYPES",
    "Dataset",
    "DatasetError",
    "Fault",
    "Transitions",
    "check_card",
    "dataset_folder",
    "export_minari",
    "find_datasets",
    "import_exorl",
    "is_described",
    "load",
    "merge",
    "origin",
    "read_card",
    "read_episode",
    "relabel",
    "subsample",
    "task_rewards",
    "validate",
    "write_card",
    "write_episode",
]
