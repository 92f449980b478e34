"""The exceptions of record files, with MindSpore's names, error codes and beginnings of messages.

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
    """The outcome of a conversion."""

    SUCCESS = 0
    FAILED = 1


SUCCESS = MSRStatus.SUCCESS
FAILED = MSRStatus.FAILED


class LogRuntime:
    """The origin of an error: the host or a device."""

    RT_HOST = 1
    RT_DEVICE = 2


class ErrorCodeType:
    """The meaning of an error code: an error or an exception."""

    ERROR_CODE = 1
    EXCEPTION_CODE = 2


class ErrorLevel:
    """The severity of an error."""

    COMMON_LEVEL = 0
    SUGGESTION_LEVEL = 1
    MINOR_LEVEL = 2
    MAJOR_LEVEL = 3
    CRITICAL_LEVEL = 4


class MindRecordException(RuntimeError):
    """The base class of all errors of record files.

    `error_msg` says what is wrong and `error_code` is its number.

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
    """Return an error with a message, for a kind whose constructor takes none."""
    error = kind()
    error.error_msg = f"{error.error_msg} {detail}"
    return error


class UnknownError(MindRecordException):
    """An error that has no kind of its own."""


class ParamValueError(MindRecordException):
    """An error for an argument of a wrong value."""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"Invalid parameter value. {error_detail}"


class ParamTypeError(MindRecordException):
    """An error for an argument of a wrong type."""

    def __init__(self, param_name: str, expected_type: str) -> None:
        super().__init__()
        self.error_msg = f"Invalid parameter type. '{param_name}' expect {expected_type} type."


class ParamMissError(MindRecordException):
    """An error for a missing argument."""

    def __init__(self, param_name: str) -> None:
        super().__init__()
        self.error_msg = f"Param missing. '{param_name}' is required."


class PathNotExistsError(MindRecordException):
    """An error for a file or folder that does not exist."""

    def __init__(self, error_path: object) -> None:
        super().__init__()
        self.error_msg = f"Invalid path. {error_path}"


class DbConnectionError(MindRecordException):
    """An error for an index file that cannot be opened."""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"Db connection is error. Detail: {error_detail}"


class MRMOpenError(MindRecordException):
    """An error for a file that cannot be opened."""

    def __init__(self) -> None:
        super().__init__()
        self.error_msg = "MindRecord File could not open successfully."


class MRMOpenForAppendError(MindRecordException):
    """An error for a file that cannot be opened for appending."""

    def __init__(self) -> None:
        super().__init__()
        self.error_msg = "MindRecord File could not open successfully for append."


class MRMInvalidPageSizeError(MindRecordException):
    """An error for a page size out of range."""


class MRMInvalidHeaderSizeError(MindRecordException):
    """An error for a header size that is out of range, or too small for the header."""


class MRMSetHeaderError(MindRecordException):
    """An error for a header that cannot be set."""


class MRMWriteDatasetError(MindRecordException):
    """An error for rows that cannot be written."""


class MRMCommitError(MindRecordException):
    """An error for files that cannot be completed."""


class MRMLaunchError(MindRecordException):
    """An error for reading that cannot be started."""


class MRMFinishError(MindRecordException):
    """An error for reading that cannot be ended."""


class MRMCloseError(MindRecordException):
    """An error for a file that cannot be closed."""


class MRMAddSchemaError(MindRecordException):
    """An error for a schema that is given twice."""


class MRMAddIndexError(MindRecordException):
    """An error for an index field that cannot be added."""


class MRMBuildSchemaError(MindRecordException):
    """An error for a schema that cannot be built."""


class MRMGetMetaError(MindRecordException):
    """An error for a schema that is needed and was not given."""


class MRMIndexGeneratorError(MindRecordException):
    """An error for an index that cannot be started."""


class MRMGenerateIndexError(MindRecordException):
    """An error for an index that cannot be written."""


class MRMInitSegmentError(MindRecordException):
    """An error for reading by pages that cannot be started."""


class MRMFetchCandidateFieldsError(MindRecordException):
    """An error for index fields that cannot be read."""


class MRMReadCategoryInfoError(MindRecordException):
    """An error for categories of a field that cannot be read."""


class MRMFetchDataError(MindRecordException):
    """An error for rows of a category that cannot be read."""


class _Detailed(MindRecordException):
    _about = ""

    def __init__(self, error_detail: object) -> None:
        super().__init__()
        self.error_msg = f"{self._about} Detail: {error_detail}"


class MRMInvalidSchemaError(_Detailed):
    """An error for a value that is not a schema."""

    _about = "Schema format is error."


class MRMValidateDataError(_Detailed):
    """An error for rows that do not match the schema."""

    _about = "Raw data do not match the schema."


class MRMDefineIndexError(_Detailed):
    """An error for a field that cannot be an index."""

    _about = "Failed to define index field."


class MRMDefineBlobError(_Detailed):
    """An error for a field that cannot be a blob."""

    _about = "Failed to define blob field."


class MRMUnsupportedSchemaError(_Detailed):
    """An error for a schema that cannot be read."""

    _about = "Schema is not supported."


class MRMDefineCategoryError(_Detailed):
    """An error for a field that cannot group rows."""

    _about = "Failed to define category field."
