"""Writes docs/reference/json.md: the fields of what commands write as JSON, from the JSON Schema beside it.

    python -m tools.json_page
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
SCHEMA, PAGE = FOLDER / "tuplewise-1.schema.json", FOLDER / "json.md"
_FRONT = """# JSON

`--format json`, and `.to_json()` in Python, write one object. [tuplewise-1.schema.json](tuplewise-1.schema.json) is its
JSON Schema, and this page is made of it (`make pages`). The tests hold what commands write against the schema.

A field that is marked with `?` may be missing. `[]` is an entry of a list.

## Every result

"""
_SHARED = ("table", "constraint", "predicate", "side", "row", "row_or_null", "cell", "changed_rule")
_HEAD = "| Field | Type | Meaning |\n|---|---|---|\n"


def schema() -> dict[str, Any]:
    """The schema of all results."""
    read: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return read


def page() -> str:
    """The whole page."""
    whole = schema()
    shared = {f"#/$defs/{name}": name for name in _SHARED}
    parts = [_FRONT, _HEAD, *_rows(whole, shared)]
    for name, found in whole["$defs"].items():
        if name in _SHARED:
            continue
        parts.append(f"\n## {found.get('title', name)}\n\n")
        if "description" in found:
            parts.append(f"{found['description']}\n\n")
        for form in found.get("oneOf", [found]):
            if "oneOf" in found:
                parts.append(f"**{form['title']}**\n\n")
            parts += [_HEAD, *_rows(form, shared), "\n"]
    parts.append("\n## Parts that several have\n")
    for name in _SHARED:
        found = whole["$defs"][name]
        parts.append(f"\n### {name}\n\n")
        if "description" in found:
            parts.append(f"{found['description']}\n\n")
        if "properties" in found:
            parts += [_HEAD, *_rows(found, shared)]
    return "".join(parts).replace("\n\n\n", "\n\n")


def _rows(found: dict[str, Any], shared: dict[str, str], prefix: str = "") -> Iterator[str]:
    """A line for each field, those of objects within it after it."""
    for name, one in found.get("properties", {}).items():
        optional = "" if name in found.get("required", ()) else "?"
        path = f"{prefix}{name}"
        yield f"| `{path}`{optional} | {_type(one, shared)} | {_cell(one.get('description', ''))} |\n"
        within = one.get("items", one)
        yield from _rows(within, shared, f"{path}[]." if "items" in one else f"{path}.")


def _type(one: dict[str, Any], shared: dict[str, str]) -> str:
    if "$ref" in one:
        name = shared[one["$ref"]]
        return f"[{name}](#{name})"
    if "oneOf" in one:
        return " or ".join(_type(each, shared) for each in one["oneOf"])
    if "const" in one:
        return f"`{json.dumps(one['const'])}`"
    types = one.get("type", "string")
    listed = [types] if isinstance(types, str) else types
    if "items" in one:
        within = f"array of {_type(one['items'], shared)}"
        return " or ".join(within if name == "array" else name for name in listed)
    return " or ".join(listed)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
