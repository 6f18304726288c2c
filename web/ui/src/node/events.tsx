// What happened at a node lately.
import type { Event } from "#gen/event_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { amountText, unitOf } from "../api/units";
import { ViolationLine } from "../components/in_the_way";
import { AllocationLink, Cause, NodeLink } from "../components/names";
import { PagedTable, type Column } from "../components/table";
import { Instant } from "../components/time";
import { limitText } from "../format";
import { detailOf, eventWord, reasonText } from "../requests/allocation";

const pageSize = 50;

const columns: Column<Event>[] = [
  { title: "When", cell: (e) => <Instant at={e.happenedAt} /> },
  { title: "What", cell: (e) => eventWord(e.kind) },
  { title: "Of", cell: (e) => <Of event={e} /> },
  { title: "By", cell: (e) => <Cause of={e} /> },
  { title: "Why", cell: (e) => <Why event={e} /> },
];

/** Events lists events of a node and below it, newest first. */
export function Events({ tree, node }: { tree: string; node: string }) {
  const interest = { tree, usage: true, queue: true, configuration: true };
  const pages = usePages<Event>(`events ${tree} ${node}`, interest, async (read, pageToken, signal) => {
    const ask = { tree, node, newestFirst: true, pageSize, pageToken, read };
    const page = await api.events.listEvents(ask, { signal });
    return { rows: page.events, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  return (
    <PagedTable
      caption="Events"
      columns={columns}
      pages={pages}
      keyOf={(e) => String(e.number)}
      empty="Nothing is remembered here. The cluster keeps the last 10,000 events, and those of allocations for ten minutes after their end."
    />
  );
}

function Of({ event: e }: { event: Event }) {
  const { crossing, scheduled } = detailOf(e);
  if (crossing) return <NodeLink tree={crossing.tree} node={crossing.node} />;
  if (scheduled?.limit) return <NodeLink tree={scheduled.limit.tree} node={scheduled.limit.node} />;
  if (e.tree) return <NodeLink tree={e.tree} node={e.node} />;
  return <AllocationLink of={e} />;
}

function Why({ event: e }: { event: Event }) {
  const { decision, crossing: c, scheduled, reason: why } = detailOf(e);
  const reason = reasonText(why, amountText);
  return (
    <>
      {decision?.violations.map((v, i) => (
        <div key={i}>
          <ViolationLine violation={v} />
        </div>
      ))}
      {reason && <bdi>{reason}</bdi>}
      {c && (
        <>
          <bdi>{c.resource}</bdi>: {String(c.percent)} % of limit {limitText(c.limit, unitOf(c.tree, c.resource))}, used{" "}
          {amountText(c.tree, c.resource, c.used)}
        </>
      )}
      {scheduled?.limit && <bdi>{scheduled.limit.reason || scheduled.limit.id}</bdi>}
    </>
  );
}
