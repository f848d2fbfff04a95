"""What docs/benchmarks.md says of denial constraints kept current."""

from __future__ import annotations

import statistics

from benchmarks import records
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, milliseconds, seconds, times_faster, typical

BATCHES = {
    "dc_state/airport-10": "Airport",
    "dc_state/airport-20": "Airport",
    "dc_state/airport-30": "Airport",
    "dc_state/adult-10": "Adult",
    "dc_state/uce-10": "Uce, no cross-column predicates",
}
SINGLE_ROWS = {
    "dc_state/tax-250000": "Tax",
    "dc_state_sync/tax-250000": "the same, `--sync`",
    "dc_state/tax-1000000": "Tax",
    "dc_state_sync/tax-1000000": "the same, `--sync`",
}
SMALLER, LARGER = "dc_state/tax-250000", "dc_state/tax-1000000"
ZONES, PUBLISHED = "dc_state/tax-100000-zones", "dc_state/tax-100000-published"
DC_STATES = (*BATCHES, *SINGLE_ROWS, ZONES, PUBLISHED)
PARTS = {
    "codes": "the rows' codes", "dictionaries": "dictionaries", "orders": "sorted orders", "zones": "zones",
    "clues_and_sets": "clues and hitting sets", "other": "all else",
}  # fmt: skip


def dc_state_tables(everything: list[Record]) -> str:
    """Batches beside discovery from scratch, and single rows of large tables, as Markdown tables."""
    batches = [_batch(r, BATCHES[r["case"]]) for r in _newest(everything, BATCHES)]
    rows = [_single(r, SINGLE_ROWS[r["case"]]) for r in _newest(everything, SINGLE_ROWS)]
    parts = []
    if batches:
        title = (
            "Denial constraints kept current (`dc insert`): a batch from a CSV file, beside discovery from scratch on"
            " all rows, loaded:"
        )
        head = "| Table | rows | more | DCs before, after | a batch | of which reading | from scratch | faster |"
        parts.append("\n".join([title, "", head, alignment(8), *batches]))
    if rows:
        title = "Single rows that come and go (Tax without errors, no cross-column predicates), each a revision:"
        head = (
            "| Table | rows | a row comes | nine in ten under | a row goes | nine in ten under | 10,000 rows come"
            " | opened | built | peak memory, while building |"
        )
        parts.append("\n".join([title, "", head, alignment(10), *rows]))
    return "\n\n".join(parts)


def _newest(everything: list[Record], cases: dict[str, str]) -> list[Record]:
    return [r for r in (records.latest(everything, case) for case in cases) if r is not None]


def _batch(ours: Record, title: str) -> str:
    scratch = statistics.median(ours["figures"]["scratch_seconds"][1:] or ours["figures"]["scratch_seconds"])
    cells = [
        title,
        f"{ours['parameters']['rows']:,}",
        f"{ours['parameters']['more']:,}",
        f"{ours['figures']['rules_before']:,}, {ours['answer']['listed']:,}",
        typical(ours),
        seconds(statistics.median(ours["kernel_seconds"]["reading"][1:] or ours["kernel_seconds"]["reading"])),
        seconds(scratch),
        times_faster(scratch / records.typical_seconds(ours)),
    ]
    return "| " + " | ".join(cells) + " |"


def _single(ours: Record, title: str) -> str:
    found = ours["figures"]
    batch = found.get("batch_seconds")
    cells = [
        title,
        f"{ours['parameters']['rows']:,}",
        *(milliseconds(found[f"{what}_seconds"][of]) for what in ("insert", "delete") for of in ("median", "p90")),
        seconds(batch["reading"] + batch["inserting"]) if batch else "",
        seconds(found["open_seconds"]),
        seconds(found["build_seconds"]),
        f"{megabytes(found['opened_peak_bytes'])}, {megabytes(found['build_peak_bytes'])}",
    ]
    return "| " + " | ".join(cells) + " |"


def dc_state_sentences(everything: list[Record]) -> str:
    """Growth with rows, what a state takes on the disk, and the published index, as a Markdown list."""
    lines = []
    smaller, larger = records.latest(everything, SMALLER), records.latest(everything, LARGER)
    if smaller is not None and larger is not None:
        ratio = records.typical_seconds(larger) / records.typical_seconds(smaller)
        sizes = [f"{r['parameters']['rows']:,}" for r in (smaller, larger)]
        lines.append(f"A single row that comes costs {ratio:.2f} times as much at {sizes[1]} rows as at {sizes[0]}.")
    if larger is not None:
        lines += [_opening(larger), _on_disk(larger)]
    zones, published = records.latest(everything, ZONES), records.latest(everything, PUBLISHED)
    if zones is not None and published is not None:
        lines.append(_indexes(zones, published))
    return "\n".join(f"- {line}" for line in lines)


def _opening(ours: Record) -> str:
    found = ours["figures"]
    return (
        f"Tax, {ours['parameters']['rows']:,} rows: of a row that comes, reading it into codes takes"
        f" {milliseconds(found['insert_reading_seconds']['median'])}; a process that opens the state takes"
        f" {seconds(found['open_process_seconds'])} from start to exit, the first row that comes in it"
        f" {milliseconds(found['first_insert_seconds'])}; single rows after the batch"
        f" {milliseconds(found['insert_after_batch_seconds']['median'])}."
    )


def _on_disk(ours: Record) -> str:
    parts, parquet = ours["figures"]["bytes"], ours["figures"]["parquet_bytes"]
    whole = sum(parts.values())
    listed = ", ".join(f"{name} {parts[part] / 1e6:,.1f} MB" for part, name in PARTS.items())
    return (
        f"On the disk, {ours['parameters']['rows']:,} rows: {megabytes(whole)} ({listed}), {whole / parquet:.1f} times"
        f" the Parquet file of the same rows ({megabytes(parquet)})."
    )


def _indexes(zones: Record, published: Record) -> str:
    pairs = [f"{r['figures']['pairs_compared']['median']:,.0f}" for r in (zones, published)]
    times = [milliseconds(records.typical_seconds(r)) for r in (zones, published)]
    return (
        f"The published index for two inequalities (`--index published`) on Tax, {zones['parameters']['rows']:,} rows:"
        f" {pairs[1]} pairs compared and {times[1]} for a row that comes (medians); by zones {pairs[0]} and {times[0]}."
    )
