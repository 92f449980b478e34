"""Data pipelines under MindSpore's names: sources, operations on rows, samplers, transforms and iterators.

>>> import mycel.dataset as ds
>>> from mycel.dataset import vision
>>> import numpy as np
>>> images = ds.NumpySlicesDataset({"image": np.zeros((4, 8, 8, 1), np.uint8), "label": [0, 1, 2, 3]}, shuffle=False)
>>> batches = images.map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], "image").batch(2)
>>> batches.get_dataset_size(), batches.output_shapes()
(2, [[2, 1, 8, 8], [2]])
"""

from mycel.dataset import config, transforms, vision
from mycel.dataset.batching import BatchDataset, BatchInfo, BucketBatchByLengthDataset, PaddedBatchDataset
from mycel.dataset.config import (
    get_callback_timeout,
    get_debug_mode,
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_seed,
    set_seed,
)
from mycel.dataset.core import Dataset
from mycel.dataset.iterators import DictIterator, TupleIterator
from mycel.dataset.mapping import MapDataset
from mycel.dataset.nodes import (
    ConcatDataset,
    FilterDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from mycel.dataset.nodes import zip_datasets as zip
from mycel.dataset.records import MindDataset
from mycel.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mycel.dataset.sources import (
    FashionMnistDataset,
    GeneratorDataset,
    KMnistDataset,
    MappableDataset,
    MnistDataset,
    NumpySlicesDataset,
)

__all__ = [
    "BatchDataset",
    "BatchInfo",
    "BucketBatchByLengthDataset",
    "BuiltinSampler",
    "ConcatDataset",
    "Dataset",
    "DictIterator",
    "DistributedSampler",
    "FashionMnistDataset",
    "FilterDataset",
    "GeneratorDataset",
    "IterSampler",
    "KMnistDataset",
    "MapDataset",
    "MindDataset",
    "MappableDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PKSampler",
    "PaddedBatchDataset",
    "ProjectDataset",
    "RandomSampler",
    "RenameDataset",
    "RepeatDataset",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "ShuffleDataset",
    "SkipDataset",
    "SubsetRandomSampler",
    "SubsetSampler",
    "TakeDataset",
    "TupleIterator",
    "WeightedRandomSampler",
    "ZipDataset",
    "config",
    "get_callback_timeout",
    "get_debug_mode",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_seed",
    "set_seed",
    "transforms",
    "vision",
    "zip",
]
