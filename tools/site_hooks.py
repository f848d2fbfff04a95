"""What mkdocs changes in the pages that it has made (`hooks` in mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

_CODE_WITH_BARS = re.compile(r"<code>[^<]*\\\|[^<]*</code>")
_ONLY_DESCRIBED = re.compile(
    r"\(<code>([^<]*)</code>(?:, default:\s*<code>[^<]*</code>\s*)?\)\s*–\s*<div class=\"doc-md-description\">\s*</div>"
)


def on_page_content(html: str, **_: Any) -> str:
    r"""Bars of code in tables, and parameters whose docstring has a description in place of a type.

    Examples
    --------
    >>> on_page_content(r"<td><code>cpu\|cuda</code></td>")
    '<td><code>cpu|cuda</code></td>'
    >>> on_page_content('<b>rows</b> (<code>what `load` gives</code>) – <div class="doc-md-description"> </div>')
    '<b>rows</b> – what <code>load</code> gives'
    """
    html = _CODE_WITH_BARS.sub(lambda found: found[0].replace("\\|", "|"), html)
    return _ONLY_DESCRIBED.sub(lambda found: "– " + re.sub(r"`([^`]*)`", r"<code>\1</code>", found[1]), html)
