"""What contracts are exported to and imported from: names alone, which the command line shows."""

from __future__ import annotations

_EXPORTS = "tuplewise.engine.contract.exports"
TARGETS: dict[str, str] = {
    "dbt": f"{_EXPORTS}.dbt:export",
    "deequ": f"{_EXPORTS}.deequ:export",
    "frictionless": f"{_EXPORTS}.frictionless:export",
    "gx": f"{_EXPORTS}.great_expectations:export",
    "pandera": f"{_EXPORTS}.pandera:export_pandas",
    "pandera-polars": f"{_EXPORTS}.pandera:export_polars",
    "pydeequ": f"{_EXPORTS}.deequ:export_python",
    "schema": f"{_EXPORTS}.file_schema:export",
    "soda": f"{_EXPORTS}.soda:export",
    "spark": f"{_EXPORTS}.spark_filters:export",
    "sql": f"{_EXPORTS}.sql:export",
}
"""The targets, and the function of each: module:name, called with a contract and the name of one table or None."""
WITH_DIALECT = ("sql", "dbt", "soda")
"""Targets whose functions take `dialect`, too."""

_IMPORTS = "tuplewise.engine.contract.imports"
FORMATS: dict[str, str] = {
    "dbt": f"{_IMPORTS}.dbt:read",
    "frictionless": f"{_IMPORTS}.frictionless:read",
    "pandera": f"{_IMPORTS}.pandera:read",
    "sql": f"{_IMPORTS}.sql_ddl:read",
}
"""The formats, and the function that reads each: module:name, called with a path or an object."""
OF_TEXT = ("dbt", "sql")
"""Formats whose functions are called with the text of a file and its name, and give a contract and notes."""
