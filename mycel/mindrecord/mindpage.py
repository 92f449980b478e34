"""Reading the rows of record files by the value of an index field, page by page."""

from __future__ import annotations

import json
from typing import Any

from mycel._src.foundation import arguments
from mycel.mindrecord.errors import (
    MRMDefineCategoryError,
    MRMFetchDataError,
    MRMReadCategoryInfoError,
    ParamTypeError,
    ParamValueError,
    failure,
)
from mycel.mindrecord.row_reader import Records
from mycel.mindrecord.schema_checks import CONSUMERS, check_consumers


class MindPage:
    """A reader of rows that share a value of an index field, `num_row` at a time.

    `file_name` is one file, of which all shards are read, or a list of files. Rows are
    read in the thread that asks, which is said once where `num_consumer` is not the usual 4.

    >>> import tempfile, os
    >>> from mycel.mindrecord import FileWriter, MindPage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.mindrecord")
    ...     writer = FileWriter(name)
    ...     writer.add_schema({"kind": {"type": "string"}, "n": {"type": "int32"}})
    ...     writer.write_raw_data([{"kind": "odd" if n % 2 else "even", "n": n} for n in range(5)])
    ...     writer.commit()
    ...     pages = MindPage(name)
    ...     pages.category_field = "kind"
    ...     pages.read_category_info()
    ...     pages.read_at_page_by_name("even", 1, 2)
    '{"categories":[{"count":3,"id":0,"name":"even"},{"count":2,"id":1,"name":"odd"}],"key":"kind_0"}'
    [{'kind': 'even', 'n': 4}]
    """

    def __init__(self, file_name: str | list[str], num_consumer: int = CONSUMERS) -> None:
        check_consumers("MindPage", num_consumer)
        if not isinstance(file_name, (str, list)) or not file_name:
            raise ParamValueError(f"MindPage reads a file or a list of files, not {file_name!r}.")
        self._records = Records("MindPage", file_name)
        self._category_field: str | None = None
        self._categories: dict[str, list[int]] = {}

    @property
    def candidate_fields(self) -> list[str]:
        """Return the index fields, by which rows can be grouped."""
        return list(self._records.index_fields)

    @property
    def category_field(self) -> str | None:
        """Return the field by which rows are grouped.

        Set it to one of `candidate_fields`; MRMDefineCategoryError otherwise.
        """
        return self._category_field

    @category_field.setter
    def category_field(self, category_field: str) -> None:
        if not category_field or not isinstance(category_field, str):
            raise ParamTypeError("category_fields", "str")
        if category_field not in self._records.index_fields:
            raise MRMDefineCategoryError(
                f"{category_field!r} is not an index field; these are {self._records.index_fields}"
            )
        self._category_field = category_field
        self._categories = self._records.categories(category_field)

    def _grouped(self) -> dict[str, list[int]]:
        if self._category_field is None:
            raise failure(MRMReadCategoryInfoError, "Set category_field first.")
        return self._categories

    def read_category_info(self) -> str:
        """Return the values of the category field as JSON.

        Each has its name as text, its number, and how many rows have it.
        """
        groups = [
            {"count": len(rows), "id": number, "name": name}
            for number, (name, rows) in enumerate(self._grouped().items())
        ]
        return json.dumps(
            {"categories": groups, "key": f"{self._category_field}_0"}, ensure_ascii=False, separators=(",", ":")
        )

    def read_at_page_by_id(self, category_id: int, page: int, num_row: int) -> list[dict[str, Any]]:
        """Return the rows of a page of the category with this number; pages hold `num_row` rows.

        Raises ParamValueError for negative numbers, and MRMFetchDataError for a category or a page
        that does not exist.
        """
        name = "read_at_page_by_id"
        arguments.integer(name, "category_id", category_id, 0, numpy=False, error=ParamValueError)
        groups = list(self._grouped().values())
        if category_id >= len(groups):
            raise failure(MRMFetchDataError, f"There is no category {category_id}; there are {len(groups)}.")
        return self._page(name, groups[category_id], page, num_row)

    def read_at_page_by_name(self, category_name: str, page: int, num_row: int) -> list[dict[str, Any]]:
        """Return the rows of a page of the category with this value, as text.

        `read_at_page_by_id` explains the parameters.
        """
        name = "read_at_page_by_name"
        arguments.text(name, "category_name", category_name, error=ParamValueError)
        groups = self._grouped()
        if category_name not in groups:
            raise failure(MRMFetchDataError, f"No row has {category_name!r} in field {self._category_field!r}.")
        return self._page(name, groups[category_name], page, num_row)

    def _page(self, owner: str, rows: list[int], page: int, num_row: int) -> list[dict[str, Any]]:
        arguments.integer(owner, "page", page, 0, numpy=False, error=ParamValueError)
        arguments.integer(owner, "num_row", num_row, 1, numpy=False, error=ParamValueError)
        if page * num_row >= len(rows):
            raise failure(
                MRMFetchDataError, f"There is no page {page} of {num_row} rows; the category has {len(rows)} rows."
            )
        return [self._records.row(number) for number in rows[page * num_row : (page + 1) * num_row]]
