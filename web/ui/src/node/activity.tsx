// The last 24 hours of a node.
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ActivityStep } from "#gen/v1beta1/activity_pb";
import type { Limit } from "#gen/common_pb";
import { Unit } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { TimeChart, type Series } from "../components/chart";
import type { Measure } from "../components/chart_marks";
import { filter } from "../components/filters";
import { Answer } from "../components/states";
import { exact, short, span } from "../format";
import { setQuery } from "../router";

/** The times that can be chosen, with the steps of five minutes that they have. */
const ranges: [string, string, number][] = [
  ["1h", "the last hour", 12],
  ["6h", "the last 6 hours", 72],
  ["", "the last 24 hours", 288],
];

function RangePicker() {
  return (
    <div class="filters">
      <label>
        Time
        <select value={filter("range")} onChange={(e) => setQuery({ range: e.currentTarget.value })}>
          {ranges.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Activity shows how much was held and waited, and what was granted. */
export function Activity({ tree, node }: { tree: string; node: string }) {
  const lastSteps = ranges.find(([name]) => name === filter("range"))?.[2] ?? 288;
  const read = useRead(`activity ${tree} ${node} ${lastSteps}`, { tree, node, usage: true, queue: true }, (_, signal) =>
    api.activity.getActivity({ tree, node, lastSteps }, { signal }),
  );
  if (read.failure?.kind === "missing") {
    return <p class="quiet empty">Nothing has happened here since the serving node started.</p>;
  }
  return (
    <>
      <RangePicker />
      <Answer read={read}>
        {({ steps }) => {
          const times = steps.map((s) => (s.beginsAt ? timestampDate(s.beginsAt) : new Date(0)));
          const values = (of: (s: (typeof steps)[number]) => bigint) => steps.map((s) => Number(of(s)));
          return (
            <div class="charts">
              <Amounts times={times} steps={steps} />
              <TimeChart
                title="Claims held and waiting"
                times={times}
                series={[
                  { name: "held", values: values((s) => s.held) },
                  { name: "waiting", values: values((s) => s.waiting) },
                ]}
              />
              <TimeChart
                title="Granted, released and lost in five minutes"
                times={times}
                series={[
                  { name: "granted", values: values((s) => s.granted) },
                  { name: "released", values: values((s) => s.released) },
                  { name: "expired or preempted", values: values((s) => s.lost) },
                ]}
              />
              {steps.some((s) => s.longestWaitMs > 0n) && (
                <TimeChart
                  title="Longest wait of those granted in five minutes"
                  times={times}
                  series={[{ name: "longest wait", values: values((s) => s.longestWaitMs) }]}
                  format={span}
                  measure="span"
                />
              )}
            </div>
          );
        }}
      </Answer>
    </>
  );
}

/** measureOf decides about the marks of an axis: bytes are marked in the units in which the limit is written. */
function measureOf(unit: Unit, limit: number | undefined): Measure {
  if (unit === Unit.MILLI) return "thousandths";
  if (unit !== Unit.BYTES) return "number";
  return limit && /[kMGTPE]$/.test(exact(BigInt(limit), unit)) ? "decimal bytes" : "bytes";
}

/** Amounts draws each resource with the limit in force. */
function Amounts({ times, steps }: { times: Date[]; steps: ActivityStep[] }) {
  const names = Object.keys(steps.at(-1)?.amounts ?? {}).sort();
  return names.map((name) => {
    const at = steps.map((s) => s.amounts[name]);
    const unit = at.at(-1)?.unit ?? Unit.COUNT;
    const limits = at.map((a) => limitOf(a?.limit));
    const series: Series[] = [{ name: "used", values: at.map((a) => a && Number(a.used)) }];
    if (at.some((a) => a?.waiting)) series.push({ name: "waiting", values: at.map((a) => a && Number(a.waiting)) });
    if (limits.some((l) => l !== undefined)) series.push({ name: "limit", values: limits, limit: true });
    const format = (value: number) => short(BigInt(Math.round(value)), unit);
    return <TimeChart key={name} title={name} times={times} series={series} format={format} measure={measureOf(unit, limits.at(-1))} />;
  });
}

/** limitOf is the amount of a limit; absent for an unlimited one. */
function limitOf(limit: Limit | undefined): number | undefined {
  const value = limit?.value;
  return value?.case === "amount" || value?.case === "advisory" ? Number(value.value) : undefined;
}
