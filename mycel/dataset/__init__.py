"""Data pipelines: sources, operations on rows, samplers, transforms and iterators.

The names are MindSpore's.

>>> import mycel.dataset as ds
>>> from mycel.dataset import vision
>>> import numpy as np
>>> rows = {"image": np.zeros((4, 8, 8, 1), np.uint8), "label": [0, 1, 2, 3]}
>>> images = ds.NumpySlicesDataset(rows, shuffle=False)
>>> batches = images.map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], "image").batch(2)
>>> batches.get_dataset_size(), batches.output_shapes()
(2, [[2, 1, 8, 8], [2]])
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel.dataset import audio, config, debug, text, transforms, utils, vision
from mycel.dataset.basic_sources.generator_source import GeneratorDataset
from mycel.dataset.basic_sources.mappable_source import MappableDataset, NumpySlicesDataset
from mycel.dataset.basic_sources.modality_bases import (
    AudioBaseDataset,
    TextBaseDataset,
    VisionBaseDataset,
)
from mycel.dataset.caching.dataset_cache import CacheStatistics, DatasetCache
from mycel.dataset.callback import DSCallback, WaitedDSCallback
from mycel.dataset.config import (
    ErrorSamplesMode,
    get_callback_timeout,
    get_debug_mode,
    get_enable_watchdog,
    get_error_samples_mode,
    get_multiprocessing_start_method,
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_seed,
    get_video_backend,
    set_seed,
    set_video_backend,
)
from mycel.dataset.debug import DebugHook
from mycel.dataset.iteration.iterators import DictIterator, TupleIterator
from mycel.dataset.json_serialization import compare, deserialize, serialize, show
from mycel.dataset.nodes.batching import BatchInfo
from mycel.dataset.nodes.sync_wait import sync_wait_for_dataset
from mycel.dataset.pipeline import (
    BatchDataset,
    BucketBatchByLengthDataset,
    ConcatDataset,
    Dataset,
    FilterDataset,
    MapDataset,
    PaddedBatchDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    SyncWaitDataset,
    TakeDataset,
    TransferDataset,
    ZipDataset,
)
from mycel.dataset.pipeline import zip_datasets as zip
from mycel.dataset.profiling import NodeProfile, PipelineProfile, profile
from mycel.dataset.readers.columnar.arrow import ArrowDataset
from mycel.dataset.readers.columnar.hugging_face import HuggingFaceDataset
from mycel.dataset.readers.mindrecords import MindDataset
from mycel.dataset.readers.schema import Schema
from mycel.dataset.readers.text_files import CSVDataset, PaddedDataset, TextFileDataset
from mycel.dataset.readers.tfrecords import TFRecordDataset
from mycel.dataset.readers.webdataset import WebDataset
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
from mycel.dataset.sets.audio import (
    CMUArcticDataset,
    GTZANDataset,
    LibriTTSDataset,
    LJSpeechDataset,
    SpeechCommandsDataset,
    TedliumDataset,
    YesNoDataset,
)
from mycel.dataset.sets.digits_and_letters import EMnistDataset, QMnistDataset, SemeionDataset, USPSDataset
from mycel.dataset.sets.image_folder_and_cifar import (
    CelebADataset,
    Cifar10Dataset,
    Cifar100Dataset,
    ImageFolderDataset,
    STL10Dataset,
    SVHNDataset,
)
from mycel.dataset.sets.images import (
    Caltech101Dataset,
    Caltech256Dataset,
    DIV2KDataset,
    FlickrDataset,
    Food101Dataset,
    LSUNDataset,
    OmniglotDataset,
    Places365Dataset,
    RenderedSST2Dataset,
    SBUDataset,
    SUN397Dataset,
)
from mycel.dataset.sets.mnist import FashionMnistDataset, KMnistDataset, MnistDataset
from mycel.dataset.sets.scenes import (
    CityscapesDataset,
    Flowers102Dataset,
    KITTIDataset,
    LFWDataset,
    ManifestDataset,
    PhotoTourDataset,
    SBDataset,
    WIDERFaceDataset,
)
from mycel.dataset.sets.synthetic_data import FakeImageDataset, RandomDataset
from mycel.dataset.sets.text import (
    AGNewsDataset,
    AmazonReviewDataset,
    CoNLL2000Dataset,
    DBpediaDataset,
    EnWik9Dataset,
    IMDBDataset,
    PennTreebankDataset,
    SogouNewsDataset,
    SST2Dataset,
    UDPOSDataset,
    WikiTextDataset,
    YahooAnswersDataset,
    YelpReviewDataset,
)
from mycel.dataset.sets.translation_and_questions import (
    CLUEDataset,
    IWSLT2016Dataset,
    IWSLT2017Dataset,
    Multi30kDataset,
    SQuADDataset,
)
from mycel.dataset.sets.voc_coco import CocoDataset, VOCDataset
from mycel.dataset.text.enums import SentencePieceModel
from mycel.dataset.utils import LineReader
from mycel.dataset.vision.color import ToNumpy

__all__ = [
    "BatchDataset",
    "BatchInfo",
    "BucketBatchByLengthDataset",
    "BuiltinSampler",
    "CSVDataset",
    "CacheStatistics",
    "CelebADataset",
    "Cifar100Dataset",
    "Cifar10Dataset",
    "CocoDataset",
    "ConcatDataset",
    "DSCallback",
    "Dataset",
    "DatasetCache",
    "DictIterator",
    "DistributedSampler",
    "FashionMnistDataset",
    "FilterDataset",
    "GeneratorDataset",
    "HuggingFaceDataset",
    "ImageFolderDataset",
    "IterSampler",
    "KMnistDataset",
    "MapDataset",
    "MappableDataset",
    "MindDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PKSampler",
    "PaddedBatchDataset",
    "PaddedDataset",
    "ProjectDataset",
    "RandomSampler",
    "RenameDataset",
    "RepeatDataset",
    "STL10Dataset",
    "SVHNDataset",
    "Sampler",
    "Schema",
    "SequentialSampler",
    "Shuffle",
    "ShuffleDataset",
    "SkipDataset",
    "SubsetRandomSampler",
    "SubsetSampler",
    "SyncWaitDataset",
    "TFRecordDataset",
    "TakeDataset",
    "TextFileDataset",
    "TransferDataset",
    "TupleIterator",
    "VOCDataset",
    "WaitedDSCallback",
    "WeightedRandomSampler",
    "ZipDataset",
    "audio",
    "compare",
    "config",
    "debug",
    "deserialize",
    "get_callback_timeout",
    "get_debug_mode",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_seed",
    "serialize",
    "set_seed",
    "show",
    "sync_wait_for_dataset",
    "text",
    "transforms",
    "utils",
    "vision",
    "DebugHook",
    "ErrorSamplesMode",
    "LineReader",
    "SentencePieceModel",
    "ToNumpy",
    "get_enable_watchdog",
    "get_error_samples_mode",
    "get_multiprocessing_start_method",
    "get_video_backend",
    "set_video_backend",
    "zip",
    "AudioBaseDataset",
    "TextBaseDataset",
    "VisionBaseDataset",
    "AGNewsDataset",
    "AmazonReviewDataset",
    "DBpediaDataset",
    "YahooAnswersDataset",
    "SogouNewsDataset",
    "YelpReviewDataset",
    "CoNLL2000Dataset",
    "UDPOSDataset",
    "PennTreebankDataset",
    "WikiTextDataset",
    "SST2Dataset",
    "EnWik9Dataset",
    "IMDBDataset",
    "CLUEDataset",
    "SQuADDataset",
    "Multi30kDataset",
    "IWSLT2016Dataset",
    "IWSLT2017Dataset",
    "Caltech101Dataset",
    "Caltech256Dataset",
    "DIV2KDataset",
    "FlickrDataset",
    "Food101Dataset",
    "LSUNDataset",
    "OmniglotDataset",
    "Places365Dataset",
    "RenderedSST2Dataset",
    "SBUDataset",
    "SUN397Dataset",
    "CityscapesDataset",
    "Flowers102Dataset",
    "KITTIDataset",
    "LFWDataset",
    "ManifestDataset",
    "PhotoTourDataset",
    "SBDataset",
    "WIDERFaceDataset",
    "EMnistDataset",
    "FakeImageDataset",
    "QMnistDataset",
    "RandomDataset",
    "SemeionDataset",
    "USPSDataset",
    "CMUArcticDataset",
    "GTZANDataset",
    "LJSpeechDataset",
    "LibriTTSDataset",
    "SpeechCommandsDataset",
    "TedliumDataset",
    "YesNoDataset",
    "ArrowDataset",
    "WebDataset",
    "NodeProfile",
    "PipelineProfile",
    "profile",
]

__dir__ = _listing(__name__)
