// What has happened to an allocation.
import type { Allocation } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { amountText } from "../api/units";
import { AllocationLink } from "../components/names";
import type { Named } from "../requests/name";
import { Empty, FailureNote } from "../components/states";
import { Table, type Column } from "../components/table";
import { Instant } from "../components/time";
import { detailOf, reasonText } from "../requests/allocation";
import { historyOf, type Happening } from "../requests/history";
import { ViolationLine } from "../components/in_the_way";

const columns: Column<Happening>[] = [
  { title: "When", cell: (h) => <Instant at={h.at} /> },
  { title: "What", cell: (h) => h.what },
  { title: "By", cell: (h) => h.event?.by && <AllocationLink of={h.event.by} beside={h.event.namespace} /> },
  { title: "Why", cell: (h) => <Why happening={h} /> },
];

/** AllocationHistory joins the record with the events of its id. */
export function AllocationHistory({ of: { namespace, id }, allocation }: { of: Named; allocation?: Allocation }) {
  const read = useRead(`events ${namespace} ${id}`, { queue: true, usage: true }, (fresh, signal) =>
    api.events.listEvents({ namespace, id, pageSize: 1000, read: fresh }, { signal }),
  );
  const rows = historyOf(allocation, read.data?.events ?? []);
  return (
    <section>
      <h2>History</h2>
      {read.failure && <FailureNote failure={read.failure} again={read.again} />}
      {rows.length > 0 ? (
        <Table caption="What has happened" columns={columns} rows={rows} keyOf={(h) => h.key} />
      ) : (
        !read.loading && <Empty>Nothing is remembered. The cluster keeps the last 10,000 events.</Empty>
      )}
    </section>
  );
}

function Why({ happening }: { happening: Happening }) {
  const detail = happening.event && detailOf(happening.event);
  const violations = detail?.decision?.violations ?? [];
  const reason = reasonText(detail?.reason, amountText);
  return (
    <>
      {violations.map((v, i) => (
        <div key={i}>
          <ViolationLine violation={v} />
        </div>
      ))}
      {reason && <bdi>{reason}</bdi>}
    </>
  );
}
