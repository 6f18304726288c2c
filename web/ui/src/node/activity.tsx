// The last 24 hours of a node.
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ActivityStep } from "#gen/activity_pb";
import type { Limit } from "#gen/common_pb";
import { Unit } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { TimeChart, type Series } from "../components/chart";
import type { Measure } from "../components/chart_marks";
import { Answer } from "../components/states";
import { short, span } from "../format";

/** Activity shows how much was held and waited, and what was granted. */
export function Activity({ tree, node }: { tree: string; node: string }) {
  const read = useRead(`activity ${tree} ${node}`, { tree, node, usage: true, queue: true }, (_, signal) =>
    api.activity.getActivity({ tree, node }, { signal }),
  );
  if (read.failure?.kind === "missing") {
    return <p class="quiet empty">Nothing has happened here since the serving node started.</p>;
  }
  return (
    <Answer read={read}>
      {({ steps }) => {
        const times = steps.map((s) => (s.beginsAt ? timestampDate(s.beginsAt) : new Date(0)));
        const values = (of: (s: (typeof steps)[number]) => bigint) => steps.map((s) => Number(of(s)));
        return (
          <>
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
            <TimeChart
              title="Longest wait of those granted in five minutes"
              times={times}
              series={[{ name: "longest wait", values: values((s) => s.longestWaitMs) }]}
              format={span}
              measure="span"
            />
          </>
        );
      }}
    </Answer>
  );
}

const measures: Partial<Record<Unit, Measure>> = { [Unit.BYTES]: "bytes", [Unit.MILLI]: "thousandths" };

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
    return <TimeChart key={name} title={name} times={times} series={series} format={format} measure={measures[unit]} />;
  });
}

/** limitOf is the amount of a limit; absent for an unlimited one. */
function limitOf(limit: Limit | undefined): number | undefined {
  const value = limit?.value;
  return value?.case === "amount" || value?.case === "advisory" ? Number(value.value) : undefined;
}
