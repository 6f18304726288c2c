// Limits of a node that are scheduled.
import type { LimitAdjustment, ScheduledLimit } from "#gen/scheduled_limit_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { amountText } from "../api/units";
import { FailureNote } from "../components/states";
import { Table, type Column } from "../components/table";
import { Instant } from "../components/time";

/** adjustmentText writes what a scheduled limit does, as the command line takes it. */
function adjustmentText(tree: string, resource: string, a: LimitAdjustment): string {
  const value = a.value.value ?? 0n;
  const text = amountText(tree, resource, value < 0n ? -value : value);
  if (a.value.case === "cap") return `${resource}=cap:${text}`;
  if (a.value.case === "add") return `${resource}=${value < 0n ? "-" : "+"}${text}`;
  return `${resource}=${text}`;
}

const columns: Column<ScheduledLimit>[] = [
  {
    title: "Limit",
    cell: (s) => <bdi>{Object.keys(s.adjustments).sort().map((r) => adjustmentText(s.tree, r, s.adjustments[r]!)).join(", ")}</bdi>,
  },
  { title: "State", cell: (s) => (s.inForce ? "in force" : "to come") },
  { title: "From", cell: (s) => <Instant at={s.beginsAt} exact /> },
  { title: "Until", cell: (s) => <Instant at={s.endsAt} exact /> },
  { title: "Recurs", cell: (s) => s.every },
  { title: "Who", cell: (s) => <bdi>{s.actor}</bdi> },
  { title: "Why", cell: (s) => <bdi>{s.reason}</bdi> },
];

/** ScheduledLimits lists those of one node, and nothing if there are none. */
export function ScheduledLimits({ tree, node }: { tree: string; node: string }) {
  const read = useRead(`scheduled ${tree} ${node}`, { tree, usage: true, configuration: true }, (fresh, signal) =>
    api.trees.listScheduledLimits({ tree, node, read: fresh }, { signal }),
  );
  const rows = read.data?.limits.filter((s) => s.node === node) ?? [];
  if (read.failure?.kind === "unreachable") return <FailureNote failure={read.failure} again={read.again} />;
  if (!rows.length) return null;
  return (
    <section>
      <h2>Scheduled limits</h2>
      <Table caption="Scheduled limits" columns={columns} rows={rows} keyOf={(s) => s.id} />
    </section>
  );
}
