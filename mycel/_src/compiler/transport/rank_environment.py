"""The rank and world size of this process, by the environment variables of its launcher.

`world` reads the environment. MindSpore's variables come first (MS_WORKER_NUM or RANK_SIZE, RANK_ID
or MS_NODE_ID, MS_SCHED_HOST, MS_SCHED_PORT, MS_ROLE), which `mycel launch` and `msrun` set; then
those of Open MPI, of MPICH and its relatives (PMI), PyTorch's, and of Slurm. Ranks meet at a store:
where MS_ROLE is MS_WORKER the launcher serves it, or a scheduler (MS_ROLE=MS_SCHED); else rank 0
does, which Slurm has on the first machine of a step. MYCEL_TRANSPORT is "sockets" or "mpi"; ranks
that mpirun has started without MS_SCHED_HOST use MPI, as they know no place to meet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PORT", "SIZES", "World", "world"]

PORT = 8118


@dataclass(frozen=True)
class World:
    """What the environment says of this process and the others.

    `rank` is None where the store has to give a number; `local` is the place among the ranks of
    this machine, and how many there are, where that is known. `host` and `port` are the store's.
    """

    size: int
    rank: int | None
    local: tuple[int, int] | None
    host: str
    port: int
    served: bool
    scheduler: bool
    kind: str


SIZES = ("MS_WORKER_NUM", "RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE")
_RANKS = ("RANK_ID", "MS_NODE_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
_LOCAL = (
    ("MS_LOCAL_RANK", "MS_LOCAL_WORKER_NUM"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


def world(variables: Mapping[str, str] = os.environ) -> World:
    """Return what `variables` say of this process; one without any of them is alone.

    Raises RuntimeError for values that are no numbers, or do not fit each other.

    >>> world({}).size, world({"RANK_SIZE": "4", "RANK_ID": "2"}).rank
    (1, 2)
    """
    slurm = "SLURM_PROCID" in variables and "SLURM_STEP_ID" in variables
    size = _first(variables, (*SIZES, *(("SLURM_NTASKS",) if slurm else ()))) or 1
    rank = _first(variables, (*_RANKS, *(("SLURM_PROCID",) if slurm else ())))
    role = variables.get("MS_ROLE", "MS_WORKER")
    if role not in ("MS_WORKER", "MS_SCHED"):
        raise RuntimeError(f"communication.init: MS_ROLE is {role!r}; it is MS_WORKER or MS_SCHED")
    if size < 1 or (rank is not None and not 0 <= rank < size):
        raise RuntimeError(f"communication.init: the environment says rank {rank} of {size}, which is none")
    local = None
    for names in _LOCAL:
        numbers = [_first(variables, (name,)) for name in names]
        if None not in numbers:
            local = (int(numbers[0] or 0), int(numbers[1] or 1))
            break
    host = variables.get("MS_SCHED_HOST", "").strip() or variables.get("MASTER_ADDR", "").strip()
    by_mpi = any(k in variables for k in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"))
    kind = variables.get("MYCEL_TRANSPORT", "") or ("mpi" if by_mpi and not host and size > 1 else "sockets")
    if kind not in ("sockets", "mpi"):
        raise RuntimeError(f"communication.init: MYCEL_TRANSPORT is {kind!r}; it is sockets or mpi")
    if slurm:
        host = host or _first_machine(variables)
        local = local or _local_of_slurm(variables)
    if rank is None and kind == "sockets" and size > 1 and not host and role == "MS_WORKER":
        raise RuntimeError(
            f"communication.init: there are {size} ranks, but neither RANK_ID nor MS_SCHED_HOST says which one this is "
            "and where they meet; start the program with `mycel launch -n` or `msrun`"
        )
    port = _first(variables, ("MS_SCHED_PORT", "MASTER_PORT"))
    if port is None:
        # Two steps of jobs on one machine must not meet each other.
        port = PORT if not slurm else 20000 + int(variables.get("SLURM_JOB_ID", "0")) % 20000
    served = "MS_ROLE" in variables or rank is None
    return World(size, rank, local, host or "127.0.0.1", port, served, role == "MS_SCHED", kind)


def _first_machine(variables: Mapping[str, str]) -> str:
    """Return the first machine of a step of Slurm; empty where all ranks are on one."""
    if "1" in (variables.get("SLURM_STEP_NUM_NODES", ""), variables.get("SLURM_NNODES", "")):
        return ""
    for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        text = variables.get(name, "").strip()
        if text:
            # "node[01-04,7]-ib,other": of each list in brackets the first, up to a comma outside.
            return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", text).partition(",")[0]
    return variables.get("SLURM_LAUNCH_NODE_IPADDR", "").strip()


def _local_of_slurm(variables: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the place of a task of Slurm among those of its machine, and how many these are."""
    place, machine = _first(variables, ("SLURM_LOCALID",)), _first(variables, ("SLURM_NODEID",))
    text = variables.get("SLURM_STEP_TASKS_PER_NODE", "") or variables.get("SLURM_TASKS_PER_NODE", "")
    counts: list[int] = []
    for part in text.split(","):  # "8(x3),4": eight on each of three machines, and four on one
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None:
            return None
        counts += [int(found[1])] * int(found[2] or 1)
    if place is None or machine is None or machine >= len(counts) or place >= counts[machine]:
        return None
    return place, counts[machine]


def _first(variables: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        text = variables.get(name, "").strip()
        if text:
            if not text.isascii() or not text.isdigit():
                raise RuntimeError(f"communication.init: {name} is {text!r}, which is no whole number")
            return int(text)
    return None
