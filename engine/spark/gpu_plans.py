"""The operators of Spark's plans that the RAPIDS Accelerator would run on a GPU, as it reports them without a GPU.

`STAYS_ON_CPU` lists the operators that are known to stay on the CPU, with reasons. Any other one there is unexpected: a
plan of ours that left the GPU by mistake, or a table of an unknown kind.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.spark.session import open_session
from tuplewise.engine.spark.streams import callbacks_closed
from tuplewise.spark_conf.plugin import PLUGIN_COORDINATES, rapids_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILE = "local-gpu"
CONF = {"spark.rapids.sql.mode": "explainOnly", "spark.rapids.sql.explain": "NONE"}
"""Settings of a session that plans as for GPUs, and runs on the CPU: it needs the plugin's jar, but no GPU."""

_LINE = re.compile(r"\s*(?P<mark>[*!@#$])(?P<kind>\w*) <(?P<name>[^>]+)> (?P<says>.*)")
_MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class StaysOnCpu:
    """An operator that is known to stay on the CPU.

    Attributes
    ----------
    operator : the plugin's name for it
    says : a part of the plugin's reason
    why : what this means to users
    plans : the plans that may have it (`Explained.plan`)
    """

    operator: str
    says: str
    why: str
    plans: frozenset[str]


@dataclass(frozen=True, slots=True)
class OnCpu:
    """An operator of a plan that stays on the CPU, with our reason if it is listed, else the plugin's."""

    operator: str
    why: str
    listed: bool


@dataclass(frozen=True)
class Explained:
    """A summary of the plans of all queries of one kind of work.

    Attributes
    ----------
    plan : the work: "load", "encode", ...
    queries : number of plans
    on_gpu : operators of all plans that run on the GPU
    on_cpu : those that don't, each reason once
    """

    plan: str
    queries: int
    on_gpu: int
    on_cpu: tuple[OnCpu, ...]

    def to_dict(self) -> dict[str, object]:
        """As the JSON of `tuplewise doctor` lists it."""
        return {"plan": self.plan, "on_gpu": self.on_gpu, "on_cpu": [asdict(one) for one in self.on_cpu]}


@dataclass(frozen=True, slots=True)
class Line:
    """The plugin's statement on an operator, an expression or a partitioning."""

    kind: str
    name: str
    on_gpu: bool
    says: str


IN_SPARK = ("encode", "dc check", "dc discover", "od discover")
STAYS_ON_CPU = (
    StaysOnCpu(
        "FileSourceScanExec",
        "does not support modified escape chars",
        "a CSV file with doubled quotes inside of quotes (RFC 4180): the plugin's reader knows the backslash only;"
        " write such tables as Parquet",
        frozenset(("load", "encode")),
    ),
    StaysOnCpu(
        "FileSourceScanExec",
        "GpuCSVScan only supports [",
        "a CSV file in another encoding than UTF-8, which the plugin's reader doesn't know; convert it to UTF-8",
        frozenset(("load",)),
    ),
    StaysOnCpu(
        "FileSourceScanExec",
        "JsonFileFormat does not support Corrupt Record",
        "JSON lines: which lines are no objects is told by a column that the plugin's reader doesn't know;"
        " write such tables as Parquet",
        frozenset(("load",)),
    ),
    StaysOnCpu(
        "ProjectExec",
        "may get incorrect file name",
        "asks the scan, which is the CPU's, which file a row is from",
        frozenset(("load", "encode")),
    ),
    StaysOnCpu(
        "LocalTableScanExec",
        "does not currently support the operator class",
        "a small table of the driver's, sent to all tasks: where splits, blocks and heavy groups are",
        frozenset(IN_SPARK),
    ),
    StaysOnCpu(
        "CollectLimitExec",
        "disabled by default",
        "takes a few witnesses from the tasks that find them",
        frozenset(("dc discover",)),
    ),
)
"""Nothing that grows with the rows, but for scans of some texts. The hand-over to Python is no part of plans."""


def entry_of(line: Line, plan: str) -> StaysOnCpu | None:
    """The entry of `STAYS_ON_CPU` that covers a line of the plugin in a plan."""
    fitting = (e for e in STAYS_ON_CPU if e.operator == line.name and e.says in line.says and plan in e.plans)
    return next(fitting, None)


def summary(plan: str, plans: Sequence[Sequence[Line]]) -> Explained:
    """Summarise the plugin's statements on the plans of one kind of work."""
    lines = [line for one in plans for line in one]
    on_cpu: dict[OnCpu, None] = {}
    for line in lines:
        if not line.on_gpu:
            entry = entry_of(line, plan)
            why = line.says[:_MOST_WORDS] if entry is None else entry.why
            on_cpu[OnCpu(line.name, why, entry is not None)] = None
    on_gpu = sum(line.kind == "Exec" and line.on_gpu for line in lines)
    return Explained(plan, len(plans), on_gpu, tuple(on_cpu))


def lines_of(text: str) -> list[Line]:
    """What the plugin says, line by line; what goes with an operator that stays on the CPU is left out.

    Examples
    --------
    >>> lines_of("!Exec <CollectLimitExec> cannot run on GPU\\n  @Partitioning <SinglePartition$> could run on GPU")
    [Line(kind='Exec', name='CollectLimitExec', on_gpu=False, says='cannot run on GPU')]
    """
    found = (_LINE.match(line) for line in text.splitlines())
    return [Line(m["kind"], m["name"], m["mark"] == "*", m["says"]) for m in found if m and m["mark"] in "*!"]


class _Listener:
    """A listener that collects Spark's queries. It runs in threads of the JVM and makes no calls there."""

    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    def onSuccess(self, action: str, query: Any, nanoseconds: int) -> None:
        self._heard.append(query)

    def onFailure(self, action: str, query: Any, fault: Any) -> None:
        self._heard.append(query)

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


class PlanWatch:
    """A context in which Spark's plans are explained, by Spark's own hook on queries.

    It sees the queries of the given session, of the active one, and of sessions that are cloned from these meanwhile.
    The plugin's jar must be on their class path.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm: Any = spark._jvm
        self._heard: list[Any] = []
        self._held: set[int] = set()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> PlanWatch:
        from pyspark.java_gateway import ensure_callback_server_started
        from pyspark.sql import SparkSession

        self._open.enter_context(callbacks_closed(self.spark))
        ensure_callback_server_started(self.spark.sparkContext._gateway)
        listener = _Listener(self._heard)
        sessions: list[Any] = [self.spark, SparkSession.getActiveSession()]  # what is opened by name is of the latter
        for session in {one._jsparkSession: None for one in sessions if one is not None}:
            queries = session.listenerManager()
            queries.register(listener)
            self._open.callback(queries.unregister, listener)
        return self

    def __exit__(self, *_: object) -> None:
        self._wait()
        self._open.close()

    def take(self) -> list[list[Line]]:
        """The plugin's statements on each plan since the last call, and on those of persisted frames at first sight."""
        self._wait()
        heard = {query.id(): query for query in self._heard}  # a session and the one it is a clone of tell both
        self._heard.clear()
        return [lines for query in heard.values() for lines in self._explained(query)]

    def _wait(self) -> None:
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def _explained(self, query: Any) -> Iterator[list[Line]]:
        for builder in self._held_in(query.executedPlan()):
            if (number := builder.cachedPlan().id()) not in self._held:
                self._held.add(number)
                staged = self._jvm.org.apache.spark.sql.execution.adaptive.LogicalQueryStage
                plan = staged(builder.logicalPlan(), builder.cachedPlan())
                dataset = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(query.sparkSession(), plan)
                yield from self._explained(dataset.queryExecution())
        yield self._explain(query)

    def _held_in(self, plan: Any) -> Iterator[Any]:
        """What Spark holds, in memory, that a plan reads."""
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            plan = plan.initialPlan()
        leaves = plan.collectLeaves()
        for leaf in (leaves.apply(i) for i in range(leaves.size())):
            name = leaf.getClass().getSimpleName()
            if name == "InMemoryTableScanExec":
                yield leaf.relation().cacheBuilder()
            elif name == "AdaptiveSparkPlanExec":
                yield from self._held_in(leaf)

    def _explain(self, query: Any) -> list[Line]:
        """By the settings of the query's own session."""
        sql = self._jvm.org.apache.spark.sql
        with self._active(query.sparkSession()):
            encoder = sql.catalyst.encoders.RowEncoder.encoderFor(query.analyzed().schema())
            frame = sql.classic.Dataset(query, encoder)
            return lines_of(self._jvm.com.nvidia.spark.rapids.ExplainPlan.explainPotentialGpuPlan(frame, "ALL"))

    @contextlib.contextmanager
    def _active(self, session: Any) -> Iterator[None]:
        """Within it the session is the one that is taken where none is named."""
        sessions = self._jvm.org.apache.spark.sql.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()


@contextlib.contextmanager
def watching(
    conf: Mapping[str, str] | None = None, *, profile: str | None = None, master: str | None = None
) -> Iterator[PlanWatch]:
    """A watch on a session that plans for GPUs, with the profile `local-gpu` unless another is named.

    Raises InputError if the plugin's jar is missing.
    """
    if rapids_jar() is None:
        what = "plans can't be explained without the jar of the RAPIDS Accelerator"
        allowed = f"{PLUGIN_COORDINATES} in ~/.m2, or its file in TUPLEWISE_RAPIDS_JAR"
        hint = f"Get it from Maven Central: mvn dependency:get -Dartifact={PLUGIN_COORDINATES}"
        raise InputError(message(what, os.environ.get("TUPLEWISE_RAPIDS_JAR"), allowed, hint))
    spark = open_session(profile=profile or PROFILE, master=master, conf={**CONF, **(conf or {})}).spark
    with PlanWatch(spark) as watch:
        yield watch
