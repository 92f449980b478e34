"""Reading record files from the first row to the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mycel._src.foundation.logged_once import no_effect
from mycel.mindrecord.errors import ParamTypeError
from mycel.mindrecord.row_encoding import Schema
from mycel.mindrecord.row_reader import Records
from mycel.mindrecord.schema_checks import CONSUMERS, check_consumers


class FileReader:
    """A reader of the rows of record files in order, as dictionaries.

    Args:
        file_name (str | list[str]): One file, of which all shards are read, or a list of files.
        num_consumer (int): How many readers MindSpore has; rows are read in the thread that asks,
            which is said once where it is not the usual 4. Default: 4.
        columns (Sequence[str] | None): The fields to read; all by default. Default: None.
        operator (object | None): Has no effect, which is said once. Default: None.

    Raises:
        ParamValueError, ParamTypeError: For arguments that do not fit.
        RuntimeError: For a file that does not exist.
        MRMOpenError: For one that is damaged or not a record file.

    Examples:
        >>> import os, tempfile
        >>> import mycel.dataset as ds
        >>> from mycel.mindrecord import FileReader
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "a.mindrecord")
        ...     ds.NumpySlicesDataset({"x": [4, 5]}, shuffle=False).save(name)
        ...     reader = FileReader(name)
        ...     reader.len(), list(reader.get_next())
        ...     reader.close()
        (2, [{'x': 4}, {'x': 5}])

        Where MindSpore's reader gives an integer for a float without a fraction, and the smallest
        integer for a large one, this gives the float.
    """

    def __init__(
        self,
        file_name: str | list[str],
        num_consumer: int = CONSUMERS,
        columns: Sequence[str] | None = None,
        operator: Any = None,
    ) -> None:
        check_consumers("FileReader", num_consumer)
        if operator is not None:
            no_effect("FileReader", "operator", operator, "nothing is done to the rows", True)
        if columns and not isinstance(columns, list):
            raise ParamTypeError("columns", "list")
        self._records = Records("FileReader", file_name, columns)
        self._closed = False

    def get_next(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over the rows."""
        for number in range(len(self._records)):
            if self._closed:
                raise RuntimeError("get_next: the reader is closed")
            yield self._records.row(number)

    def schema(self) -> Schema:
        """Return the fields of a row: {name: {"type": ...}}, and "shape" for arrays."""
        return {name: dict(field) for name, field in self._records.schema.items()}

    def len(self) -> int:
        """Return the number of rows."""
        return len(self._records)

    def close(self) -> None:
        """Close the files."""
        if not self._closed:
            self._closed = True
            self._records.close()
