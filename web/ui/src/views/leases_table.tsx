// The leases that are held, below their nodes: a row for each, with a bar from its grant to its end. Only rows on the
// screen are drawn.
import type { Allocation } from "#gen/allocation_pb";
import { amountText } from "../api/units";
import { filter } from "../components/filters";
import { AllocationLink, NodeLink } from "../components/names";
import { Remaining } from "../components/time";
import { counted, nodeName, span as spanText } from "../format";
import { endRows, leaseRows, type LeaseRow } from "../leases/groups";
import { markOf, placeOf, spanAround, type Mark, type Span } from "../leases/lease";
import { amountsOf, itemsOf } from "../requests/allocation";
import { useWindow } from "../tree/window";

/** The height of a row in pixels; the style sheet has the same. */
const rowHeight = 40;

interface LeaseTableProps {
  leases: Allocation[];
  /** The present ledger time in milliseconds. */
  now: number;
}

/** LeaseTable draws leases around the present. */
export function LeaseTable({ leases, now }: LeaseTableProps) {
  const span = spanAround(leases, now);
  const byEnd = filter("order") === "end";
  const rows = byEnd ? endRows(leases) : leaseRows(leases);
  const view = useWindow(rows.length, rowHeight);
  return (
    <div class="grid leases" role="region" aria-label="Leases that are held" tabIndex={0} ref={view.box}>
      <div role="table" aria-label="Leases that are held" aria-rowcount={rows.length + 1}>
        <div role="rowgroup" class="grid-head">
          <div role="row" class="lease-row" aria-rowindex={1}>
            <span role="columnheader">Lease</span>
            <span role="columnheader" class="lease-user">
              User
            </span>
            <span role="columnheader">Holds</span>
            <span role="columnheader" class="lease-time">
              <Axis span={span} now={now} />
            </span>
            <span role="columnheader">Ends in</span>
          </div>
        </div>
        <div role="rowgroup" class="grid-body" style={{ height: `${rows.length * rowHeight}px` }}>
          {rows.slice(view.first, view.end).map((row, i) => (
            <Row key={row.key} {...{ row, span, now, byEnd }} index={view.first + i} />
          ))}
        </div>
      </div>
    </div>
  );
}

function Axis({ span, now }: { span: Span; now: number }) {
  return (
    <span class="lease-axis">
      <span class="hidden">From grant to end: </span>
      <span>{spanText(now - span.from)} ago</span>
      <span class="lease-axis-now">now</span>
      <span>in {spanText(span.to - now)}</span>
    </span>
  );
}

interface RowProps {
  row: LeaseRow;
  index: number;
  /** Rows name the nodes of their claims, because they are not below them. */
  byEnd: boolean;
  span: Span;
  now: number;
}

/** Row is at its place in the whole list, whatever else is drawn. */
function Row({ row, index, byEnd, span, now }: RowProps) {
  const place = { "aria-rowindex": index + 2, style: { top: `${index * rowHeight}px` } };
  if (row.kind === "lease") return <Lease {...{ lease: row.lease, byEnd, span, now, place }} />;
  return (
    <div role="row" class="lease-row lease-node" {...place}>
      <span role="cell">
        <NodeLink tree={row.tree} node={row.node} /> <span class="quiet">{counted(row.count, "lease")}</span>
      </span>
    </div>
  );
}

const classes: Record<Mark, string> = {
  "": "lease-plain",
  "renewal late": "lease-late",
  revoked: "lease-revoked",
  "declared end": "lease-plain",
};

const pills: Record<Mark, string> = { "": "", "renewal late": "pill-nearly", revoked: "pill-bad", "declared end": "" };

interface LeaseProps extends Omit<RowProps, "row" | "index"> {
  lease: Allocation;
  place: object;
}

function Lease({ lease: a, byEnd, span, now, place }: LeaseProps) {
  const mark = markOf(a, now);
  const bar = placeOf(a, span);
  const holds = holdsText(a, byEnd);
  return (
    <div role="row" class={`lease-row ${classes[mark]}`} {...place}>
      <span role="rowheader">
        <AllocationLink of={a} />
      </span>
      <span role="cell" class="lease-user">
        <bdi>{a.principal?.user || a.owner}</bdi>
      </span>
      <span role="cell" class="lease-holds" title={holds}>
        <bdi>{holds}</bdi>
      </span>
      <span role="cell" class="lease-time">
        <span class="lease-line" aria-hidden="true">
          <span class={`lease-bar${bar.cut ? " lease-cut" : ""}`} style={{ insetInlineStart: `${bar.left}%`, width: `${bar.width}%` }} />
        </span>
        <span class="hidden">held for {spanText(now - Number(a.grantedLedgerMs))}</span>
      </span>
      <span role="cell">
        <Remaining ledgerMs={a.expiresLedgerMs} /> {mark && <span class={`pill ${pills[mark]}`}>{mark}</span>}
        {a.revokedBy && (
          <span class="quiet">
            {" "}
            for <AllocationLink of={a.revokedBy} beside={a.namespace} />
          </span>
        )}
      </span>
    </div>
  );
}

/** holdsText is what a lease holds. The first claim has no node if the group names it. */
function holdsText(a: Allocation, whole: boolean): string {
  return a.claims
    .map((c, i) => [...(whole || i ? [nodeName(c.tree, c.node)] : []), ...amountsOf(c, amountText), ...itemsOf(c)].join(" "))
    .join("; ");
}
