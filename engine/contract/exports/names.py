"""Names in generated code: of functions and tests, made from the ids of rules."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from tuplewise.engine.report import sql


def names_for(ids: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A plain word for each id, no two alike in any case, and none a keyword of Python or among `taken`.

    Examples
    --------
    >>> names_for(["fd-1", "fd.1", "2nd", "class"])
    {'fd-1': 'fd_1', 'fd.1': 'fd_1_2', '2nd': 'rule_2nd', 'class': 'rule_class'}
    """
    found: dict[str, str] = {}
    used = list(taken)
    for rule_id in ids:
        name = re.sub(r"[^A-Za-z0-9_]", "_", rule_id)
        if not name[0].isalpha() or keyword.iskeyword(name):
            name = f"rule_{name}"
        found[rule_id] = sql.unused(name, used)
        used.append(found[rule_id])
    return found
