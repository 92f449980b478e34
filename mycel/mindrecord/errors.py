"""The exceptions of record files, with MindSpore's names, messages' beginnings and error codes.

An error code packs, from high to low bits, where the program ran (host), that it is an error, its
level, the system and module numbers, and the number in `EXCEPTIONS`; module numbers are the
hundreds of that number, plus one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

SYS_ID = 42

EXCEPTIONS: dict[str, list[int | str]] = {
    name: [number, message]
    for name, number, message in (
        ("UnknownError", 0, "Unknown Error."),
        ("ParamTypeError", 1, "Param type is error."),
        ("ParamValueError", 2, "Param value is error."),
        ("ParamMissError", 3, "Param missing."),
        ("PathNotExistsError", 4, "Path does not exist."),
        ("DbConnectionError", 5, "Db connection is error."),
        ("MRMOpenError", 100, "MindRecord could not open."),
        ("MRMOpenForAppendError", 101, "MindRecord could not open for append."),
        ("MRMInvalidPageSizeError", 102, "Failed to set page size."),
        ("MRMInvalidHeaderSizeError", 103, "Failed to set header size."),
        ("MRMSetHeaderError", 104, "Failed to set header."),
        ("MRMWriteDatasetError", 105, "Failed to write dataset."),
        ("MRMCommitError", 107, "Failed to commit."),
        ("MRMLaunchError", 108, "Failed to launch."),
        ("MRMFinishError", 109, "Failed to finish."),
        ("MRMCloseError", 110, "Failed to close."),
        ("MRMAddSchemaError", 111, "Failed to add schema."),
        ("MRMAddIndexError", 112, "Failed to add index field."),
        ("MRMBuildSchemaError", 113, "Failed to build schema."),
        ("MRMGetMetaError", 114, "Failed to get meta info."),
        ("MRMIndexGeneratorError", 115, "Failed to create index generator."),
        ("MRMGenerateIndexError", 116, "Failed to generate index."),
        ("MRMInitSegmentError", 117, "Failed to initialize segment."),
        ("MRMFetchCandidateFieldsError", 118, "Failed to fetch candidate category fields."),
        ("MRMReadCategoryInfoError", 119, "Failed to read category information."),
        ("MRMFetchDataError", 120, "Failed to fetch data by category."),
        ("MRMInvalidSchemaError", 200, "Schema is error."),
        ("MRMValidateDataError", 201, "Raw data is valid."),
        ("MRMDefineIndexError", 202, "Index field is error."),
        ("MRMDefineBlobError", 203, "Blob field is error."),
        ("MRMUnsupportedSchemaError", 204, "Schema is not supported."),
        ("MRMDefineCategoryError", 205, "Category field is error."),
    )
}


class MSRStatus(IntEnum):
    """What a conversion ended with."""

    SUCCESS = 0
    FAILED = 1


SUCCESS = MSRStatus.SUCCESS
FAILED = MSRStatus.FAILED


class LogRuntime:
    """Where an error arose: on the host or on a device."""

    RT_HOST = 1
    RT_DEVICE = 2


class ErrorCodeType:
    """What an error code stands for: an error or an exception."""

    ERROR_CODE = 1
    EXCEPTION_CODE = 2


class ErrorLevel:
    """How grave an error is."""

    COMMON_LEVEL = 0
    SUGGESTION_LEVEL = 1
    MINOR_LEVEL = 2
    MAJOR_LEVEL = 3
    CRITICAL_LEVEL = 4


class MindRecordException(Exception):
    """The base of all errors of record files; `error_msg` says what is wrong and `error_code` is
    its number.

    >>> from mycel.mindrecord import ParamValueError
    >>> print(ParamValueError("shard_num is 0"))
    [ParamValueError]: Invalid parameter value. shard_num is 0
    """

    def __init__(self) -> None:
        super().__init__()
        number, message = EXCEPTIONS.get(type(self).__name__, EXCEPTIONS["UnknownError"])
        self.error_msg = str(message)
        self.error_code = self.transform_error_code(int(number))

    def __str__(self) -> str:
        return f"[{type(self).__name__}]: {self.error_msg}"

    @staticmethod
    def transform_error_code(exception_no: int) -> int:
        """Return the error code for a number in `EXCEPTIONS`."""
        fields = (
            (LogRuntime.RT_HOST, 30),
            (ErrorCodeType.ERROR_CODE, 28),
            (ErrorLevel.COMMON_LEVEL, 25),
            (SYS_ID, 17),
            (exception_no // 100 + 1, 12),
            (exception_no, 0),
        )
        return sum(value << shift for value, shift in fields)


Failure = TypeVar("Failure", bound=MindRecordException)


def failure(kind: type[Failure], detail: str) -> Failure:
    """Return an error of a kind whose constructor takes no message, with one."""
    error = kind()
    error.error_msg = f"{error.error_msg} {detail}"
    return error


class UnknownError(MindRecordException):
    """An error that has no kind of its own."""


class ParamValueError(MindRecordException):
    """An argument has a value that it may not have."""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"Invalid parameter value. {error_detail}"


class ParamTypeError(MindRecordException):
    """An argument has a type that it may not have."""

    def __init__(self, param_name: str, expected_type: str) -> None:
        super().__init__()
        self.error_msg = f"Invalid parameter type. '{param_name}' expect {expected_type} type."


class ParamMissError(MindRecordException):
    """An argument is missing."""

    def __init__(self, param_name: str) -> None:
        super().__init__()
        self.error_msg = f"Param missing. '{param_name}' is required."


class PathNotExistsError(MindRecordException):
    """There is no such file or folder."""

    def __init__(self, error_path: object) -> None:
        super().__init__()
        self.error_msg = f"Invalid path. {error_path}"


class DbConnectionError(MindRecordException):
    """An index file cannot be opened."""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"Db connection is error. Detail: {error_detail}"


class MRMOpenError(MindRecordException):
    """A file cannot be opened."""

    def __init__(self) -> None:
        super().__init__()
        self.error_msg = "MindRecord File could not open successfully."


class MRMOpenForAppendError(MindRecordException):
    """A file cannot be opened for appending."""

    def __init__(self) -> None:
        super().__init__()
        self.error_msg = "MindRecord File could not open successfully for append."


class MRMInvalidPageSizeError(MindRecordException):
    """A page size is out of range."""


class MRMInvalidHeaderSizeError(MindRecordException):
    """A header size is out of range, or too small for the header."""


class MRMSetHeaderError(MindRecordException):
    """A header cannot be set."""


class MRMWriteDatasetError(MindRecordException):
    """Rows cannot be written."""


class MRMCommitError(MindRecordException):
    """Files cannot be finished."""


class MRMLaunchError(MindRecordException):
    """Reading cannot be started."""


class MRMFinishError(MindRecordException):
    """Reading cannot be ended."""


class MRMCloseError(MindRecordException):
    """A file cannot be closed."""


class MRMAddSchemaError(MindRecordException):
    """A schema is given twice."""


class MRMAddIndexError(MindRecordException):
    """An index field cannot be added."""


class MRMBuildSchemaError(MindRecordException):
    """A schema cannot be built."""


class MRMGetMetaError(MindRecordException):
    """A schema is needed and was not given."""


class MRMIndexGeneratorError(MindRecordException):
    """An index cannot be begun."""


class MRMGenerateIndexError(MindRecordException):
    """An index cannot be written."""


class MRMInitSegmentError(MindRecordException):
    """Reading by pages cannot be begun."""


class MRMFetchCandidateFieldsError(MindRecordException):
    """The index fields cannot be read."""


class MRMReadCategoryInfoError(MindRecordException):
    """The categories of a field cannot be read."""


class MRMFetchDataError(MindRecordException):
    """The rows of a category cannot be read."""


class _Detailed(MindRecordException):
    _about = ""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"{self._about} Detail: {error_detail}"


class MRMInvalidSchemaError(_Detailed):
    """A schema is not one."""

    _about = "Schema format is error."


class MRMValidateDataError(_Detailed):
    """Rows do not match the schema."""

    _about = "Raw data do not match the schema."


class MRMDefineIndexError(_Detailed):
    """A field cannot be an index."""

    _about = "Failed to define index field."


class MRMDefineBlobError(_Detailed):
    """A field cannot be a blob."""

    _about = "Failed to define blob field."


class MRMUnsupportedSchemaError(_Detailed):
    """A schema that cannot be read."""

    _about = "Schema is not supported."


class MRMDefineCategoryError(_Detailed):
    """A field cannot group rows."""

    _about = "Failed to define category field."
