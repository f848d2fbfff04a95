"""Entry of the command line: exit codes, errors as one message, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tuplewise.engine.cli.settings import State

EXIT_USAGE = 2
EXIT_LIMIT = 3
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and leave the process with its exit code."""
    try:
        code = run(argv)
    except KeyboardInterrupt:
        code = _interrupted()
    if code == EXIT_INTERRUPTED:
        # Kernels that still run in threads would hold the interpreter back until they are done
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code (interface.md)."""
    try:
        import click

        from tuplewise.engine.cli.commands import cli
        from tuplewise.engine.cli.settings import State
        from tuplewise.engine.errors import TuplewiseError
    except KeyboardInterrupt:
        return _interrupted()
    state = State()
    try:
        code = cli.main(
            args=None if argv is None else list(argv), prog_name="tuplewise", standalone_mode=False, obj=state
        )
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except TuplewiseError as error:
        return _report(state, str(error), error.exit_code)
    except MemoryError:
        return _report(state, "out of memory; use fewer rows (--rows) or columns (--columns, --exclude)", EXIT_LIMIT)
    except Exception as error:  # whatever it is, the user gets one line
        first = next(iter(str(error).splitlines()), "")
        hint = "" if state.verbose else " (-v shows where)"
        return _report(state, f"internal error: {type(error).__name__}: {first}{hint}", EXIT_USAGE)


def _report(state: State, text: str, code: int) -> int:
    """One message on stderr; with -v the traceback before it."""
    if state.verbose:
        import traceback

        traceback.print_exc()
    print(f"tuplewise: error: {text}", file=sys.stderr)
    return code


def _interrupted() -> int:
    """Stop what was started, whatever the user presses meanwhile."""
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
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
