"""`mindspore.multiprocessing`: Python's module of that name; tensors are pickled by value."""

from multiprocessing import *
from multiprocessing.context import Process
from multiprocessing.pool import Pool
