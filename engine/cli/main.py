"""Entry of the command line: exit codes, errors as one message, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tuplewise.engine.cli.settings import Invocation

EXIT_USAGE = 2
EXIT_LIMIT = 3
EXIT_INTERRUPTED = 130


_ending = threading.Event()


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and leave the process with its exit code.

    The work runs in a thread of its own, so that Ctrl-C ends it at once: Spark would replace the signal handler, and
    kernels never check for signals.
    """
    codes: list[int] = []
    try:
        work = threading.Thread(target=lambda: codes.append(run(argv, own_process=True)), name="work", daemon=True)
        work.start()
        while work.is_alive():
            work.join(timeout=0.2)
        code = codes[0] if codes else EXIT_USAGE
    except KeyboardInterrupt:
        code = _interrupted()
    if code == EXIT_INTERRUPTED or any(t.name == "kernels" for t in threading.enumerate()):
        # Threads that still work, or compile kernels, would hold the interpreter back or crash as it goes
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(argv: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Run a command line; returns the exit code (docs/guides/ci.md).

    `own_process`: nothing else runs in this process, so Spark may be stopped once it is no longer needed.
    """
    try:
        import click

        from tuplewise.engine.cli.commands import cli
        from tuplewise.engine.cli.settings import Invocation
        from tuplewise.engine.errors import TuplewiseError, command_line_option
    except KeyboardInterrupt:
        return _interrupted()
    invocation = Invocation(own_process=own_process)
    try:
        code = cli.main(
            args=None if argv is None else list(argv), prog_name="tuplewise", standalone_mode=False, obj=invocation
        )
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except TuplewiseError as error:
        return _report(invocation, error.spelled(command_line_option), error.exit_code)
    except SystemExit:  # click's way out of a pipe that was closed
        return 0
    except MemoryError:
        text = "out of memory; use fewer rows (--rows) or columns (--columns, --exclude)"
        return _report(invocation, text, EXIT_LIMIT)
    except Exception as error:  # whatever it is, the user gets one line
        first = next(iter(str(error).splitlines()), "")
        hint = "" if invocation.verbose else " (-v shows where)"
        return _report(invocation, f"internal error: {type(error).__name__}: {first}{hint}", EXIT_USAGE)


def _report(invocation: Invocation, text: str, code: int) -> int:
    """Print one message to stderr, after the traceback with -v. Prints nothing where Ctrl-C made the work fail."""
    if _ending.is_set():
        return code
    if invocation.verbose:
        import traceback

        traceback.print_exc()
    print(f"tuplewise: error: {text}", file=sys.stderr)
    return code


def _interrupted() -> int:
    """Stop all work, and ignore further Ctrl-C meanwhile."""
    _ending.set()
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    files = sys.modules.get("tuplewise.engine.report.files")
    if files is not None:
        files.give_up()
    stop_children()
    with contextlib.suppress(OSError, ValueError):
        print("tuplewise: interrupted", file=sys.stderr)
    return EXIT_INTERRUPTED


def stop_children(patience_seconds: float = 3.0) -> None:
    """End the processes that this one started (the JVM and its Python workers): politely, then by force."""
    import psutil

    try:
        children = psutil.Process().children(recursive=True)
    except psutil.Error:
        return
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.terminate()
    _, alive = psutil.wait_procs(children, timeout=patience_seconds)
    for child in alive:
        with contextlib.suppress(psutil.Error):
            child.kill()


if __name__ == "__main__":
    main()
