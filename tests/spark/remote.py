"""A driver program that tests tell what to do (`loopback.Driver`): it calls functions and sends back what they return.

Argument: the number of an open connection.
"""

from __future__ import annotations

import sys
import traceback
from multiprocessing.connection import Connection


def main(number: str) -> None:
    with Connection(int(number)) as connection:
        while (asked := connection.recv()) is not None:
            function, given, named = asked
            try:
                answer = (True, function(*given, **named))
            except Exception:
                answer = (False, traceback.format_exc())
            connection.send(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
