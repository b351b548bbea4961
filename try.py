#!/usr/bin/env python3
"""Run Timeball from a bare checkout; Python 3.11 or newer and git are all it takes.

python3 try.py                 set everything up, then run the demo
python3 try.py test [ARGS]     ... then run the tests; ARGS go to pytest
python3 try.py check           ... then run every static check and report all failures
python3 try.py WORD [ARGS]     ... then run `timeball WORD ARGS`

Everything is installed into `.venv` of the checkout (TIMEBALL_VENV names another folder), and
nothing outside the checkout is written. Later runs only compare a stamp, which costs milliseconds.

This file keeps to the syntax of the oldest Python 3, so that an old one can say what is missing.
"""

import hashlib
import os
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, os.environ.get("TIMEBALL_VENV", ".venv"))
BIN = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin")
PYTHON = os.path.join(BIN, "python.exe" if os.name == "nt" else "python")
STAMP = os.path.join(VENV, "timeball.stamp")
INGREDIENTS = ("pyproject.toml", "constraints.txt")
CHECKS = (
    ("ruff check", ["-m", "ruff", "check"]),
    ("ruff format", ["-m", "ruff", "format", "--check"]),
    ("mypy", ["-m", "mypy"]),
    ("import-linter", [os.path.join(BIN, "lint-imports"), "--no-cache", "--no-logo"]),
    ("tidy tests", ["-m", "pytest", "tests/architecture"]),
)


def main(words):
    python = suitable_python()
    identity, recipe = wanted(python)
    if read_stamp() != [identity, recipe] or not os.path.exists(PYTHON):
        set_up(python, identity, recipe)
    if words[:1] == ["check"]:
        return check()
    if words[:1] == ["test"]:
        os.chdir(ROOT)
        return become(["-m", "pytest"] + words[1:])
    return become([os.path.join(BIN, "timeball")] + (words or ["demo"]))


# Which Python, and whether the folder still fits ----------------------------------------------


def suitable_python():
    """The interpreter to build on: this one, or a newer one from PATH where this one is too old."""
    if sys.version_info >= OLDEST:
        # Inside a virtual environment, build on what lies beneath it: it may be the one to rebuild.
        return getattr(sys, "_base_executable", None) or sys.executable
    for minor in range(OLDEST[1] + 9, OLDEST[1] - 1, -1):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            found = os.path.join(folder, "python3.%d" % minor)
            # A version manager's stub may exist and yet not run.
            if os.path.exists(found) and call([found, "-c", "import zoneinfo"], quiet=True) == 0:
                return found
    raise SystemExit(
        "Timeball needs Python %d.%d or newer, and this is Python %d.%d (%s).\n"
        "Install a newer one and start it by its name, for example: python3.%d try.py"
        % (OLDEST + sys.version_info[:2] + (sys.executable, OLDEST[1] + 1))
    )


def wanted(python):
    """Two lines: what the folder belongs to (place and Python), and what is installed in it."""
    version = "%d.%d" % sys.version_info[:2]
    if sys.version_info < OLDEST:
        version = os.path.basename(python)
    digest = hashlib.sha256()
    for name in INGREDIENTS:
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return "%s for Python %s" % (VENV, version.replace("python", "")), digest.hexdigest()


def read_stamp():
    try:
        with open(STAMP, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


# Setting up ---------------------------------------------------------------------------------


def set_up(python, identity, recipe):
    """Build or refresh the folder while nobody else does."""
    lock = take_lock()
    try:
        install(python, identity, recipe, lock)
    finally:
        if lock is not None:
            os.close(lock)


def install(python, identity, recipe, lock):
    """Leave a complete folder with its stamp; what was interrupted or moved is built anew."""
    stamp = read_stamp()
    alive = os.path.exists(PYTHON)
    if stamp == [identity, recipe] and alive:  # somebody else did it while this one waited
        return
    if stamp:
        os.remove(STAMP)  # first, so that an interruption from here on leaves no promise
    if stamp[:1] == [identity] and alive:
        say("pyproject.toml or constraints.txt changed: bringing %s up to date" % VENV)
    else:
        say("setting up %s (once, about half a minute)" % VENV)
        make_venv(python, lock)
    pip = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-cache-dir"]
    wants = ["-c", "constraints.txt", "-e", ".[all,dev]"]
    if call([PYTHON] + pip + wants, lock, cwd=ROOT) != 0:
        raise SystemExit("The installation failed; pip's reason is above. Run this again to retry.")
    with open(STAMP + ".new", "wb") as file:
        file.write(("%s\n%s\n" % (identity, recipe)).encode("utf-8", "surrogateescape"))
    os.replace(STAMP + ".new", STAMP)


def take_lock():
    """An exclusive lock on this very file, as a descriptor; None where the system has no flock.

    Children inherit it: an orphaned pip keeps it until it is done, so nobody builds beside it.
    """
    try:
        import fcntl
    except ImportError:
        return None
    lock = os.open(os.path.abspath(__file__), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("another try.py is setting up; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def make_venv(python, lock):
    named = os.path.basename(VENV).startswith(".venv") or os.path.exists(VENV + "/pyvenv.cfg")
    if not named and os.path.isdir(VENV) and os.listdir(VENV):
        raise SystemExit("%s is no virtual environment and not empty; name another folder." % VENV)
    if call([python, "-c", "import venv, ensurepip; ensurepip.version()"], quiet=True) != 0:
        add_venv_module(python)
    if call([python, "-m", "venv", "--clear", VENV], lock) != 0:
        raise SystemExit("%s could not make the virtual environment %s" % (python, VENV))


def add_venv_module(python):
    """Debian and Ubuntu package a part of the standard library apart: install it where allowed."""
    import shutil

    code = "import sys; print('python%d.%d-venv' % sys.version_info[:2])"
    package = output([python, "-c", code])
    if shutil.which("apt-get") is None:
        raise SystemExit("%s lacks the modules venv and ensurepip; install them first." % python)
    if os.geteuid() != 0:
        raise SystemExit(
            "%s lacks the modules venv and ensurepip. Please run\n"
            "  sudo apt-get install %s\nand then this command again." % (python, package)
        )
    say("installing %s, which this Python needs for virtual environments" % package)
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    call(apt + ["update"], quiet=True, env=env)  # a stale list may still do; install decides
    if call(apt + ["install", "-y", "--no-install-recommends", package], quiet=True, env=env) != 0:
        raise SystemExit("apt-get could not install %s; please install it by hand." % package)


# Running ------------------------------------------------------------------------------------


def check():
    """Every check, whatever the ones before said; 1 if any failed."""
    os.chdir(ROOT)
    verdicts = []
    for name, words in CHECKS:
        say("- " + name)
        verdicts.append((name, call([PYTHON] + words)))
    say("")
    for name, code in verdicts:
        say("%-6s %s" % ("ok" if code == 0 else "FAILED", name))
    return int(any(code for _, code in verdicts))


def become(words):
    """Turn into the virtual environment's Python, so that signals and the exit code are its own."""
    if os.name == "nt":
        return call([PYTHON] + words)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(PYTHON, [PYTHON] + words)


def call(words, lock=None, quiet=False, **options):
    """The exit code of a command; 127 where it cannot even start."""
    import subprocess

    if lock is not None:
        options["pass_fds"] = (lock,)
    if quiet:
        options["stdout"] = options["stderr"] = subprocess.DEVNULL
    try:
        return subprocess.call(words, **options)
    except OSError:
        return 127


def output(words):
    import subprocess

    return subprocess.check_output(words).decode().strip()


def say(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
