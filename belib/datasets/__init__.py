"""Datasets on disk, in ExORL's episode format, with the rewards of all tasks beside them.

    <runs_dir>/datasets/<domain>/<name>/
        buffer/episode_000000_1000.npz      what ExORL reads: arrays of length + 1 rows
        rewards/episode_000000_1000.npz     one float64 array per task, recorded at collection
        relabelled/episode_000000_1000.npz  the same, computed later: a cache that may be deleted
        config.yaml  metrics.csv  checkpoint.pt    of a collected dataset
        provenance.json                            of a merged, subsampled or imported one
        card.json

Row 0 of an episode is the reset: its action and rewards are zero and belong to no transition. Row i
is the result of the i-th action. Nothing here changes or deletes an episode. From a shell:
`python -m belib.datasets --help`.
"""

from belib.datasets.card import origin as origin
from belib.datasets.card import read_card as read_card
from belib.datasets.card import task_returns as task_returns
from belib.datasets.card import validate as validate
from belib.datasets.card import write_card as write_card
from belib.datasets.derived import export_minari as export_minari
from belib.datasets.derived import import_exorl as import_exorl
from belib.datasets.derived import merge as merge
from belib.datasets.derived import subsample as subsample
from belib.datasets.files import DTYPES as DTYPES
from belib.datasets.files import Dataset as Dataset
from belib.datasets.files import DatasetError as DatasetError
from belib.datasets.files import find_datasets as find_datasets
from belib.datasets.files import load as load
from belib.datasets.files import read_episode as read_episode
from belib.datasets.files import write_episode as write_episode
from belib.datasets.relabelling import relabel as relabel
from belib.datasets.relabelling import task_rewards as task_rewards
