"""Minds one command: starts it, ends everything that came of it, reports how it ended.

A script of the standard library only, run by `timeball.action.command` as a small process of its
own beside each command, because only a parent can do what is needed here when the worker is dead:

- fd 0 is the control pipe. It brings a brief (see `Brief`) and stays open: another line, or its end
  because the worker died (even by SIGKILL), ends the command.
- fd 1 is the status pipe: one line of numbers, once nothing of the command is left: the wait status
  (-1 unknown), whether it was stopped (1) or ended by itself (0), whom SIGKILL did not end.
- fd 2 is the output pipe: the command's stdout and stderr, in the order they were written.

The minder is a child subreaper (Linux): whoever loses its parent becomes the minder's child, so
`setsid` and a double fork do not escape. When the command ends by itself, what it left in the
background is ended too, as with a systemd control group. Out of reach is what another daemon starts
for it (docker, at, systemd-run), and, if somebody kills the minder, all but its first process.
Where there is no prctl or no /proc (macOS), a command is its process group: `setsid` escapes, and
its privileges are not frozen.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import resource
import select
import sys
import time

# Start-up is what a command costs here, so the dear imports are avoided: json (by a format of our
# own), typing, and enum with signal. Type checkers take this name for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

CONTROL, STATUS, OUTPUT = 0, 1, 2
NOT_STARTED, NOT_FOUND = 126, 127
ABSENT = (errno.ENOENT, errno.ENOTDIR)
HINTS = {
    **dict.fromkeys(ABSENT, "no such file, or the interpreter of its first line is missing"),
    errno.EACCES: "not executable for this user; chmod +x it, or name its interpreter first",
    errno.ENOEXEC: "not a program; a script needs a first line such as #!/bin/sh",
    errno.E2BIG: "arguments and environment are too large for the system; pass a file instead",
}
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38

# For SIGKILL: a process that is stuck in a dead network file system never dies, and is reported.
KILL_PATIENCE_S, TICK_S = 10.0, 0.05
SWEEPER = f"{__file__.rpartition('/')[0]}/sweeper.py"
PROC = "/proc"


class Brief:
    """What `timeball.action.command` asks for.

    On the wire: the size in decimal and a line end, then fields separated by NUL, which no name,
    argument or variable can hold; what the command reads comes last and may hold anything.
    """

    def __init__(self, body: bytes) -> None:
        worker, grace_s, guarded, user, folder, limits, argc, envc, rest = body.split(b"\0", 8)
        count = int(argc)
        fields = rest.split(b"\0", count + int(envc))
        self.worker = int(worker)
        self.grace_s = float(grace_s)
        self.no_new_privs = guarded == b"1"
        self.user = user.decode()  # "" for no switch
        self.own = folder.startswith(b"*")  # made before, and removed after it
        self.folder = folder.removeprefix(b"*")  # "" to stay
        self.limits = [tuple(map(int, each.split(b"="))) for each in limits.split(b",") if each]
        self.argv = fields[:count]
        self.env = dict(pair.split(b"=", 1) for pair in fields[count:-1])
        self.stdin = fields[-1]


class Refused(Exception):
    """The command cannot be started; the text says why and what to do."""


def prctl(option: int, value: int) -> bool:
    """True if the kernel took the setting; False where there is no prctl."""
    call = getattr(ctypes.CDLL(None), "prctl", None)
    if call is None:
        return False
    none = ctypes.c_ulong(0)
    return bool(call(option, ctypes.c_ulong(value), none, none, none) == 0)


def descendants(root: int) -> list[int]:
    """Every process below `root` at about this instant; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = [entry.name for entry in os.scandir(PROC)]
    except FileNotFoundError:
        return []
    for name in names:
        if name.isdigit() and (parent := parent_of(name)):
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    front = [root]
    while front:
        born = children.get(front.pop(), [])
        found += born
        front += born
    return found


def parent_of(name: str) -> int:
    """The parent of the process `name`, 0 if it has just gone."""
    try:
        fd = os.open(f"{PROC}/{name}/stat", os.O_RDONLY)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:
        return 0
    # The name of the program comes in parentheses and may hold spaces and parentheses itself.
    return int(stat[stat.rindex(b")") + 1 :].split()[1])


def send(number: int, *, process: int = 0, group: int = 0) -> None:
    """Signal a process or a group; one that is gone, or not ours to signal, is let be."""
    try:
        if process:
            os.kill(process, number)
        if group:
            os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


class Tree:
    """The command's process and everything that descends from it."""

    def __init__(self, child: int, *, adopts: bool) -> None:
        self.child = child
        self.status: int | None = None  # of the command's own process, once it ended
        self.gone = False
        self._adopts = adopts

    def reap(self) -> None:
        """Collect whoever ended; note the command's status, and whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.gone = self._adopts or not self._group_lives()
                return
            if pid == 0:
                return
            if pid == self.child:
                self.status = status

    def signal(self, number: int) -> None:
        """Send a signal to every member, wherever it moved."""
        # The number of a group is safe to use only while its leader is not reaped; without
        # adoption there is nothing better.
        if self.status is None or not self._adopts:
            send(number, group=self.child)
        for pid in descendants(os.getpid()):
            send(number, process=pid)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.child, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of zombies
            return False
        return True


def start(brief: Brief) -> int:
    """Fork the command; its process id. What goes wrong is written to its own output."""
    pid = os.fork()
    if pid:
        return pid
    code = NOT_STARTED
    try:
        become(brief)
        os.execvpe(brief.argv[0], brief.argv, brief.env)  # noqa: S606 - the point of it
    except Refused as refusal:
        text = str(refusal)
    except OSError as error:
        code = NOT_FOUND if error.errno in ABSENT else NOT_STARTED
        text = explain(error, brief)
    except BaseException as error:  # noqa: BLE001 - the forked copy must not run on
        text = f"cannot start the command: {error!r}"
    os.write(OUTPUT, f"timeball: {text}\n".encode("utf-8", "replace"))
    os._exit(code)


def become(brief: Brief) -> None:
    """Turn the forked process into what the command may start from."""
    os.setsid()
    os.umask(0o077)
    # Nothing else to close: every other descriptor here is close-on-exec.
    os.dup2(open_stdin(brief.stdin), 0)
    os.dup2(OUTPUT, 1)
    switch_user(brief.user)
    enter(brief.folder, new=brief.own)
    # A second string, for the case that somebody kills the minder: it reaches no grandchildren.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if brief.no_new_privs:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
    for kind, most in brief.limits:
        resource.setrlimit(kind, (most, most))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    # Last: a SIGTERM that came since the fork is waiting, and now ends this process.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def open_stdin(data: bytes) -> int:
    """A descriptor that reads as `data`: a file without a name, so that nobody must feed it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin")
    else:
        from tempfile import mkstemp

        fd, name = mkstemp()
        os.unlink(name)  # noqa: PTH108 - pathlib is dear
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def switch_user(name: str) -> None:
    """Become the user called `name`, with its groups; nothing if we are that user already."""
    if not name:
        return
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Refused(f"there is no user {name!r} on this machine") from None
    if user.pw_uid == os.geteuid():
        return
    if os.geteuid() != 0:
        raise Refused(
            f"only root can run a command as {name!r}: start the worker as root, or name no user"
        )
    os.initgroups(name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def enter(folder: bytes, *, new: bool) -> None:
    """Make `folder` the working folder."""
    if not folder:
        return
    try:
        if new:
            os.mkdir(folder, 0o700)  # noqa: PTH102 - pathlib is dear
        os.chdir(folder)
    except OSError as error:
        raise Refused(f"cannot enter the working folder {show(folder)}: {error.strerror}") from None


def explain(error: OSError, brief: Brief) -> str:
    """Why exec refused, in words that say what to change."""
    hint = HINTS.get(error.errno or 0, error.strerror or repr(error))
    if error.errno in ABSENT and b"/" not in brief.argv[0]:
        path = brief.env.get(b"PATH", os.defpath.encode())
        hint = f"not found in PATH {show(path)}; write the whole path, or set PATH"
    return f"cannot run {show(brief.argv[0])}: {hint}"


def show(name: bytes) -> str:
    """A name for a message, in quotes."""
    return repr(name.decode("utf-8", "replace"))


def read_brief() -> Brief | None:
    """What the control pipe brings first; None if the worker died before it was whole."""
    received = bytearray()
    size: int | None = None
    while size is None or len(received) < size:
        # Not a byte more than the brief: what follows it is the order to stop.
        chunk = os.read(CONTROL, 1 if size is None else size - len(received))
        if not chunk:
            return None
        received += chunk
        if size is None and b"\n" in received:
            head, _, received = received.partition(b"\n")
            size = int(head)
    return Brief(bytes(received))


def open_nudges() -> tuple[int, int]:
    """A descriptor that becomes readable whenever a child ends, and the one that is written."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reader, writer


def open_worker(pid: int) -> list[int]:
    """A descriptor that becomes readable when the worker dies; none where there is no pidfd."""
    # The control pipe says so too, unless a process that the worker forked has a copy of it.
    try:
        return [os.pidfd_open(pid)]
    except (AttributeError, OSError):
        return []


def await_end(tree: Tree, nudges: int, calls: list[int]) -> bool:
    """Wait for the command; True if it was told to stop before it ended by itself."""
    poller = select.poll()
    for fd in (nudges, *calls):
        poller.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _event in poller.poll()}
        absorb(nudges)
        tree.reap()
        if tree.status is not None:
            return False
        if ready - {nudges}:
            return True


def finish(tree: Tree, nudges: int, grace_s: float) -> list[int]:
    """Ask everybody to end, then make them; returns whom even SIGKILL did not end."""
    if tree.gone:
        return []
    tree.signal(signal.SIGTERM)
    tree.signal(signal.SIGCONT)  # a stopped process heeds no SIGTERM
    await_gone(tree, nudges, time.monotonic() + grace_s)
    patience_until = time.monotonic() + KILL_PATIENCE_S
    while not tree.gone and time.monotonic() < patience_until:
        # Again and again: a process may have forked between our look and its death.
        tree.signal(signal.SIGKILL)
        await_gone(tree, nudges, time.monotonic() + TICK_S)
    return [] if tree.gone else descendants(os.getpid())


def await_gone(tree: Tree, nudges: int, until: float) -> None:
    """Wait until nobody is left, or until that instant of the monotonic clock."""
    poller = select.poll()
    poller.register(nudges, select.POLLIN)
    while not tree.gone and (left_s := until - time.monotonic()) > 0:
        # The tick is for systems without adoption, where only a look shows that a group is empty.
        poller.poll(1000 * min(left_s, TICK_S))
        absorb(nudges)
        tree.reap()


def absorb(nudges: int) -> None:
    """Empty the pipe of `open_nudges`."""
    try:
        os.read(nudges, 1 << 16)  # as much as there can be
    except BlockingIOError:
        return


def clear(brief: Brief, *, made: bool) -> None:
    """Remove the folder if it was made for the command, with all that it has left there."""
    if made and os.path.lexists(brief.folder):
        argv = (sys.executable, "-I", "-S", SWEEPER, brief.folder, brief.user)
        if os.spawnv(os.P_WAIT, sys.executable, argv):  # noqa: S606 - our own
            os.write(OUTPUT, f"timeball: cannot remove {show(brief.folder)}\n".encode())


def mind(brief: Brief) -> None:
    """Run the command of `brief` to its end, and everything that came of it, and report."""
    nudges, _ = open_nudges()
    makes = brief.own and not os.path.lexists(brief.folder)  # one that is there is not ours
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)
    tree = Tree(start(brief), adopts=adopts)
    stopped = await_end(tree, nudges, [CONTROL, *open_worker(brief.worker)])
    left = finish(tree, nudges, brief.grace_s)
    clear(brief, made=makes)
    numbers = [-1 if tree.status is None else tree.status, int(stopped), *left[:20]]
    try:
        os.write(STATUS, " ".join(map(str, numbers)).encode() + b"\n")
    except BrokenPipeError:
        return  # the worker died: nobody is left to tell


def main() -> None:
    """Mind the one command that the brief on fd 0 describes."""
    # Whatever is sent to this process, it must outlive the command. Blocked rather than ignored:
    # a SIGTERM that meets the command between fork and exec must wait there, not vanish.
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGCHLD})
    brief = read_brief()
    # A worker that is not our parent any more died before it could hear of this command.
    if brief is not None and os.getppid() == brief.worker:
        mind(brief)
    os._exit(0)  # skips the interpreter's clean-up, which nobody needs


if __name__ == "__main__":
    main()
