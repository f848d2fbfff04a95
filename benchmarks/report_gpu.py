"""What docs/benchmarks.md says of GPUs: cases that a GPU and the cores beside it did in the same run."""

from __future__ import annotations

from benchmarks import records
from benchmarks.records import Record
from benchmarks.report_cells import alignment, seconds, times_faster

GPU_RESULTS = records.RESULTS / "gpu"
ON_GPU = {
    "gpu_evidence/100000-rows-kinds-100": "compare all pairs, few distinct clues",
    "gpu_evidence/100000-rows-kinds-10000": "compare all pairs, many distinct clues",
    "gpu_evidence/100000-rows-independent-20000": "compare all pairs, very many distinct clues",
    "gpu_refine/tax-phi7-count": "count what breaks a rule of one equality and two inequalities",
    "gpu_refine/tax-two-inequalities-count": "count what breaks a rule of two inequalities",
    "gpu_refine/tax-key-grouping": "group rows by a key",
}


def gpu_table(everything: list[Record]) -> str:
    """Times on the GPU and on the cores of its machine. Raises ValueError where the answers differ."""
    lines, devices = [], set()
    for case, what in ON_GPU.items():
        gpu, cpu = (records.latest(everything, case, name) for name in ("cuda", "cpu"))
        if gpu is None or cpu is None:
            continue
        if (gpu["run"], gpu["answer"]) != (cpu["run"], cpu["answer"]):
            raise ValueError(f"{case}: not the same run, or not the same answer on the GPU and on the CPU")
        here, there = records.typical_seconds(gpu), records.typical_seconds(cpu)
        cells = [what, f"{gpu['dataset']['rows']:,}", seconds(here), seconds(there), times_faster(there / here)]
        lines.append("| " + " | ".join(cells) + " |")
        devices |= {f"{gpu['device'].partition(' ')[2]} beside {cpu['device'].removeprefix('cpu: ')}"}
    if not lines:
        return ""
    head = "| Kernel | rows | GPU | CPU | faster |"
    return "\n".join([f"Kernels on {'; '.join(sorted(devices))}:", "", head, alignment(5), *lines])
