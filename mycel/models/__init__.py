"""Networks for microcontrollers, by task and by what they cost on a device as measured."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.models.data_of_tasks import TASKS, Data, Task
from mycel.models.library import Entry, NoModel, choose, entries

__all__ = ["Data", "Entry", "NoModel", "Task", "choose", "entries", "tasks"]


def tasks() -> list[Task]:
    """Return the tasks that the library has networks for.

    >>> [task.name for task in tasks()]
    ['digits', 'keywords', 'textures', 'vibration', 'gestures']
    """
    return list(TASKS.values())


__dir__ = _listing(__name__)
