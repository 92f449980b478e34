"""`mycel launch`: runs a script in several processes, as ranks that communicate.

On one machine ``mycel launch -n 4 train.py`` is all. On several, ``--hosts a:4,b:4`` is the same
command on each of them, or with ``--ssh`` one command on any machine, which starts the others.
Where machines do not know their names, each has its own ``--node``, and ``--master`` names the
first. ``--ray`` starts ranks in a cluster of Ray.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from mycel._src.compiler.transport import addresses, authentication
from mycel._src.compiler.transport.rank_environment import PORT
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.system import subprocesses
from mycel._src.foundation.system.cpu_cores import usable_cores
from mycel.cli import machines
from mycel.cli.processes import guarded
from mycel.cli.supervisor import Job, Supervisor

__all__ = ["add_options", "command", "ranked", "run_job", "threads_of"]

NAME = "mycel launch"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("-n", "--ranks", type=int, metavar="N", help="how many ranks there are in all")
    parser.add_argument(
        "--plain", action="store_true", help="run the script as it is: `import mindspore` is not answered by mycel"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="end all ranks when one keeps others waiting for longer (default: 600; 0: never)",
    )
    parser.add_argument(
        "--standstill",
        type=float,
        default=8.0,
        metavar="SECONDS",
        help="the same for a rank that does not run at all meanwhile, as in an endless sleep (default: 8; 0: never)",
    )
    _add_machines(parser.add_argument_group("several machines").add_argument)
    _add_ray(parser.add_argument_group("a cluster of Ray").add_argument)
    parser.add_argument("--no-prefix", action="store_true", help="show the ranks' lines without `[rank K]` in front")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="write the ranks' output to DIR/rank_K.log")
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    parser.set_defaults(command=command)


def _add_machines(add: Callable[..., object]) -> None:
    add("--nodes", "--nnodes", type=int, default=1, metavar="M", help="how many machines there are (default: 1)")
    add("--node", "--node-rank", "--node_rank", type=int, metavar="K", help="which one this is (default: 0)")
    add(
        "--local",
        "--nproc-per-node",
        "--nproc_per_node",
        type=int,
        metavar="L",
        help="how many of the ranks this machine has (default: N / M)",
    )
    add("--first", type=int, metavar="R", help="the number of its first rank (default: K * L)")
    add("--master", metavar="HOST:PORT", help="where machine 0 is reached")
    add("--master-addr", "--master_addr", metavar="HOST", help="the same, with the port apart")
    add("--master-port", "--master_port", type=int, metavar="PORT", help="the port for --master-addr (default: 8118)")
    add("--hosts", metavar="A:L,B:L", help="the machines, with L ranks each (1); this command is given on each of them")
    add("--ssh", action="store_true", help="with --hosts: start the ranks of all machines from here, by ssh")
    add(
        "--agent",
        type=shlex.split,
        metavar="COMMAND",
        help="the same by another command than ssh, which is given a machine's name and what to run there",
    )
    # Given to launchers that one starts: the key comes by the input, and they end when it does.
    add("--leash", action="store_true", help=argparse.SUPPRESS)
    add("--machine", default="", help=argparse.SUPPRESS)


def _add_ray(add: Callable[..., object]) -> None:
    add("--ray", nargs="?", const="auto", metavar="ADDRESS", help="start each rank as an actor of Ray (auto, local)")
    add(
        "--restarts",
        type=int,
        default=3,
        metavar="N",
        help="how often the program is started again when a rank fails (default: 3)",
    )
    add("--min-ranks", type=int, metavar="N", help="how few ranks may go on in a smaller cluster (default: all of -n)")
    add("--cpus-per-rank", type=float, default=1.0, metavar="N", help="processors of each rank (default: 1)")
    add("--wait", type=float, default=300.0, metavar="SECONDS", help="how long to wait for places (default: 300)")
    add("--place", type=int, nargs=2, help=argparse.SUPPRESS)  # of a rank among those of its machine


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    try:
        _check(options)
        agent = machines.SSH if options.ssh else options.agent
        if options.hosts is not None and agent is not None:
            return machines.by_agent(NAME, _hosts(options), agent, lambda *place: _on_machine(options, *place))
        if options.ray is not None:
            return _by_ray(options)
        job = _job(options)
    except ValueError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    return run_job(job, leash=options.leash)


def _by_ray(options: argparse.Namespace) -> int:
    """Run the ranks in a cluster of Ray.

    Raises ValueError for options that do not go with it.
    """
    from mycel.cli import ray_ranks

    if options.ranks is None or options.nodes != 1 or options.local is not None or options.master is not None:
        raise ValueError("--ray needs -n; Ray places the ranks: leave --nodes, --local and --master out")
    least = options.ranks if options.min_ranks is None else options.min_ranks
    if not 1 <= least <= options.ranks:
        raise ValueError(f"--min-ranks must be from 1 to -n {options.ranks}, not {least}")
    if options.restarts < 0 or options.cpus_per_rank <= 0:
        raise ValueError("--restarts must not be negative, and --cpus-per-rank must be positive")

    def of_rank(count: int, rank: int, master: str, place: tuple[int, int]) -> list[str]:
        if count == 1:
            return _on_machine(options, 1, 1, 0, 1, 0, master)
        words = _on_machine(options, count, count, rank, 1, rank, master)
        at = words.index(str(options.script.resolve()))
        return [*words[:at], "--place", str(place[0]), str(place[1]), *words[at:]]

    asked = ray_ranks.Cluster(options.ranks, least, options.cpus_per_rank, options.ray, options.restarts, options.wait)
    variables = dict(s.split("=", 1) for s in machines.settings())
    return ray_ranks.by_ray(NAME, asked, of_rank, machines.key_line, variables)


def _check(options: argparse.Namespace) -> None:
    """Raise ValueError for options that do not go together, and read `--master-addr`."""
    if options.timeout < 0 or options.standstill < 0:
        raise ValueError("--timeout and --standstill must not be negative")
    if not options.script.is_file():
        raise ValueError(f"no such script: {options.script}")
    if options.hosts is not None and options.master_port is not None and options.master_addr is None:
        options.master_addr = _hosts(options)[0].name
    if options.master_addr is not None or options.master_port is not None:
        if options.master is not None or options.master_addr is None:
            raise ValueError("--master-addr and --master-port go together, without --master")
        options.master = f"{options.master_addr}:{PORT if options.master_port is None else options.master_port}"
    if options.master is not None:
        host, _, port = options.master.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"--master {options.master}: it must be HOST:PORT")
    if options.ssh and options.agent is not None:
        raise ValueError("--ssh and --agent exclude each other; give one of them")
    if options.hosts is None and (options.ssh or options.agent is not None):
        raise ValueError("--ssh and --agent need --hosts, which names the machines")
    if options.hosts is not None or options.ray is not None:
        started = options.ssh or options.agent is not None or options.ray is not None
        for name in ("first", *(("node",) if started else ())):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} is chosen where --hosts or --ray is given; leave it out")
        if options.hosts is not None and (options.ray is not None or options.nodes != 1 or options.local is not None):
            raise ValueError("--hosts says how many machines and ranks there are; leave --ray, --nodes and --local out")


def _division(options: argparse.Namespace) -> tuple[int, int, int]:
    """Return how many ranks there are, on how many machines, and how many of them on this one."""
    count, nodes, local = options.ranks, options.nodes, options.local
    node = options.node or 0
    if count is None and local is None:
        raise ValueError("-n must say how many ranks there are")
    if count is None:
        count = nodes * local
    if count < 1 or nodes < 1 or not 0 <= node < nodes:
        raise ValueError(f"-n {count} --nodes {nodes} --node {node}: there must be ranks, and nodes from 0 on")
    if local is None and count % nodes:
        raise ValueError(f"-n {count} does not divide among {nodes} machines; give --local and --first on each")
    return count, nodes, count // nodes if local is None else local


def _hosts(options: argparse.Namespace) -> list[machines.Machine]:
    """Return the machines that `--hosts` names, with their ranks."""
    found: list[machines.Machine] = []
    for part in options.hosts.split(","):
        name, _, count = part.strip().partition(":")
        if not name or name.startswith("-") or (count and not count.isdigit()) or count == "0":
            raise ValueError(f"--hosts {options.hosts}: it must be NAME:RANKS for each machine, with commas between")
        found.append(machines.Machine(name, int(count or 1), sum(m.local for m in found)))
    total = sum(m.local for m in found)
    if options.ranks not in (None, total):
        raise ValueError(f"-n {options.ranks}: --hosts {options.hosts} has {total} ranks")
    return found


def _which(found: list[machines.Machine], options: argparse.Namespace) -> int:
    """Return the place of this machine in `--hosts`.

    Raises ValueError where it is none of them, or may be several.
    """
    if options.node is not None:
        if options.node not in range(len(found)):
            raise ValueError(f"--node must be from 0 to {len(found) - 1}, not {options.node}")
        return int(options.node)
    own = socket.gethostname()
    names = {own, own.partition(".")[0]}
    here = [k for k, m in enumerate(found) if m.name in names or _is_here(m.name)]
    if len(here) != 1:
        what = "is none of them" if not here else "may be several of them"
        raise ValueError(
            f"--hosts {options.hosts}: this machine, {own}, {what}; --node says which one it is, and --ssh starts all "
            "from here"
        )
    return here[0]


def _is_here(name: str) -> bool:
    """Return whether a name is that of an address of this machine."""
    try:
        return addresses.is_here(str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]))
    except OSError:
        return False


def _on_machine(
    options: argparse.Namespace,
    count: int,
    nodes: int,
    node: int,
    local: int,
    first: int,
    master: str,
    machine: str = "",
) -> list[str]:
    """Return the command by which a machine runs its part of a launch.

    There are `count` ranks on `nodes` machines; machine `node`, whose name is `machine`, has
    `local` of them, from `first` on, and `master` is where machine 0 is reached, unless `options`
    say it.
    """
    given = [f"--ranks={count}", f"--nodes={nodes}", f"--node={node}", f"--local={local}", f"--first={first}"]
    given += [f"--timeout={options.timeout}", "--leash", f"--machine={machine}"]
    if options.master or nodes > 1:
        given.append(f"--master={options.master or master}")
    given += ["--no-prefix"] if options.no_prefix else []
    given += [f"--standstill={options.standstill}", *(["--plain"] if options.plain else [])]
    given += [f"--logs={options.logs.resolve()}"] if options.logs is not None else []
    script = [str(options.script.resolve()), *options.arguments]
    return subprocesses.python("from mycel.cli import main; sys.exit(main())", "launch", *given, *script)


def _job(options: argparse.Namespace) -> Job:
    host, _, port = (options.master or "127.0.0.1:0").rpartition(":")
    machine = options.machine
    if options.hosts is not None:
        found = _hosts(options)
        node, nodes = _which(found, options), len(found)
        count, local, first, machine = (
            sum(m.local for m in found),
            found[node].local,
            found[node].first,
            found[node].name,
        )
        if options.master is None and nodes > 1:
            host, port = found[0].name, str(PORT)
    else:
        count, nodes, local = _division(options)
        node = options.node or 0
        first = node * local if options.first is None else options.first
    if local < 1 or first < 0 or first + local > count:
        raise ValueError(f"--local {local} --first {first}: they must be ranks among {count}")
    if nodes > 1 and int(port) == 0:
        raise ValueError("--master HOST:PORT must say where machine 0 is reached by the others")
    logs = None
    if options.logs is not None:
        folder = options.logs
        folder.mkdir(parents=True, exist_ok=True)
        logs = lambda k: str(folder / f"rank_{k}.log")
    plain = ["--plain"] if options.plain else []
    place = options.place
    of_rank = lambda _: {} if place is None else {"MS_LOCAL_RANK": str(place[0]), "MS_LOCAL_WORKER_NUM": str(place[1])}
    return Job(
        NAME,
        ranked(*plain, str(options.script), *options.arguments),
        count,
        local,
        first,
        node,
        nodes,
        host,
        int(port),
        options.timeout,
        options.standstill,
        threads_of(local),
        of_rank=of_rank,
        logs=logs,
        prefix=not options.no_prefix,
        machine=machine,
    )


def ranked(*arguments: str) -> list[str]:
    """Return the command of a rank; `arguments` are those of `mycel.cli.ranked`."""
    return subprocesses.python("from mycel.cli.ranked import main; main(sys.argv[1:])", *arguments)


def threads_of(ranks: int) -> dict[str, str]:
    """Return the variables that divide the cores of this machine among `ranks`."""
    if "OMP_NUM_THREADS" in os.environ:
        return {}
    cores = usable_cores()
    return {"OMP_NUM_THREADS": str(max(1, cores // ranks))}


def run_job(job: Job, wait: float = 300.0, leash: bool = False) -> int:
    """Serve or find the store, which is given `wait` seconds, and run the ranks of this machine.

    With a `leash` the first line of the standard input is the key of the launch, and the ranks end
    when the input does.
    """
    if os.name != "posix":
        print(f"{job.name}: ranks need a POSIX system", file=sys.stderr)
        return 2
    return guarded(job.name, lambda: _run_here(job, wait, leash))


def _run_here(job: Job, wait: float, leash: bool) -> int:
    if leash:
        os.environ[authentication.KEY] = _line_of_input()
        threading.Thread(target=_until_end_of_input, name="mycel-leash", daemon=True).start()
    elif not os.environ.get(authentication.KEY):
        if job.nodes == 1:
            os.environ[authentication.KEY] = authentication.new_key()
        elif job.node == 0:
            print(
                f"{job.name}: {authentication.KEY} is not set, so anybody who reaches this machine can join; give it "
                "the same random text on all machines",
                file=sys.stderr,
            )
    try:
        chosen = addresses.chosen() if job.node == 0 and job.nodes > 1 else ""
        job = dataclasses.replace(job, host=chosen or job.host)
        store = TCPStore(
            _listening(job) if job.node == 0 and job.nodes > 1 else job.host,
            job.port,
            is_master=job.node == 0,
            timeout=timedelta(seconds=wait),
        )
    except RuntimeError as error:
        print(f"{job.name}: {error}", file=sys.stderr)
        return 2
    with store:
        return Supervisor(job, store).run()


def _listening(job: Job) -> str:
    """Return the address at which the first of several machines listens, and say if it is all."""
    found = addresses.listening(job.host)
    if found == addresses.EVERY:
        print(
            f"{job.name}: {job.host} is not an address of this machine; it listens at all that it has", file=sys.stderr
        )
    return found


def _line_of_input() -> str:
    """Read a line of the standard input, and nothing beyond it."""
    found = b""
    while not found.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        found += byte
    return found.decode().strip()


def _until_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
