"""MindSpore's record files: writing, reading, looking up, and converting other formats to them.

>>> import tempfile, os
>>> import mycel.dataset as ds
>>> from mycel.mindrecord import FileWriter
>>> with tempfile.TemporaryDirectory() as folder:
...     name = os.path.join(folder, "squares.mindrecord")
...     writer = FileWriter(name)
...     writer.add_schema({"n": {"type": "int32"}, "square": {"type": "int32"}})
...     writer.write_raw_data([{"n": n, "square": n * n} for n in range(4)])
...     writer.commit()
...     data = ds.MindDataset(name, shuffle=False)
...     rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
...     [(int(n), int(square)) for n, square in rows]
[(0, 0), (1, 1), (2, 4), (3, 9)]
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel.mindrecord.converters import Cifar10ToMR, Cifar100ToMR, CsvToMR, ImageNetToMR, MnistToMR, TFRecordToMR
from mycel.mindrecord.encryption import set_dec_mode, set_enc_key, set_enc_mode
from mycel.mindrecord.errors import (
    EXCEPTIONS,
    FAILED,
    SUCCESS,
    SYS_ID,
    DbConnectionError,
    ErrorCodeType,
    ErrorLevel,
    LogRuntime,
    MindRecordException,
    MRMAddIndexError,
    MRMAddSchemaError,
    MRMBuildSchemaError,
    MRMCloseError,
    MRMCommitError,
    MRMDefineBlobError,
    MRMDefineCategoryError,
    MRMDefineIndexError,
    MRMFetchCandidateFieldsError,
    MRMFetchDataError,
    MRMFinishError,
    MRMGenerateIndexError,
    MRMGetMetaError,
    MRMIndexGeneratorError,
    MRMInitSegmentError,
    MRMInvalidHeaderSizeError,
    MRMInvalidPageSizeError,
    MRMInvalidSchemaError,
    MRMLaunchError,
    MRMOpenError,
    MRMOpenForAppendError,
    MRMReadCategoryInfoError,
    MRMSetHeaderError,
    MRMUnsupportedSchemaError,
    MRMValidateDataError,
    MRMWriteDatasetError,
    ParamMissError,
    ParamTypeError,
    ParamValueError,
    PathNotExistsError,
    UnknownError,
)
from mycel.mindrecord.filereader import FileReader
from mycel.mindrecord.filewriter import FileWriter
from mycel.mindrecord.mindpage import MindPage

__all__ = [
    "Cifar100ToMR",
    "Cifar10ToMR",
    "CsvToMR",
    "DbConnectionError",
    "EXCEPTIONS",
    "ErrorCodeType",
    "ErrorLevel",
    "FAILED",
    "FileReader",
    "FileWriter",
    "ImageNetToMR",
    "LogRuntime",
    "MRMAddIndexError",
    "MRMAddSchemaError",
    "MRMBuildSchemaError",
    "MRMCloseError",
    "MRMCommitError",
    "MRMDefineBlobError",
    "MRMDefineCategoryError",
    "MRMDefineIndexError",
    "MRMFetchCandidateFieldsError",
    "MRMFetchDataError",
    "MRMFinishError",
    "MRMGenerateIndexError",
    "MRMGetMetaError",
    "MRMIndexGeneratorError",
    "MRMInitSegmentError",
    "MRMInvalidHeaderSizeError",
    "MRMInvalidPageSizeError",
    "MRMInvalidSchemaError",
    "MRMLaunchError",
    "MRMOpenError",
    "MRMOpenForAppendError",
    "MRMReadCategoryInfoError",
    "MRMSetHeaderError",
    "MRMUnsupportedSchemaError",
    "MRMValidateDataError",
    "MRMWriteDatasetError",
    "MindPage",
    "MindRecordException",
    "MnistToMR",
    "ParamMissError",
    "ParamTypeError",
    "ParamValueError",
    "PathNotExistsError",
    "SUCCESS",
    "SYS_ID",
    "TFRecordToMR",
    "UnknownError",
    "set_dec_mode",
    "set_enc_key",
    "set_enc_mode",
]

__dir__ = _listing(__name__)
