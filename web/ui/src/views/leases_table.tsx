// The leases that are held: a row for each, with a bar from its grant to its end.
import type { Allocation } from "#gen/allocation_pb";
import { Claims } from "../components/claims";
import { AllocationLink } from "../components/names";
import { nameKey } from "../requests/name";
import { Remaining } from "../components/time";
import { span as spanText } from "../format";
import { markOf, placeOf, spanAround, type Mark, type Span } from "../leases/lease";

interface LeaseTableProps {
  leases: Allocation[];
  /** The present ledger time in milliseconds. */
  now: number;
}

/** LeaseTable draws leases around the present. */
export function LeaseTable({ leases, now }: LeaseTableProps) {
  const span = spanAround(leases, now);
  return (
    <div class="scroll" role="region" aria-label="Leases that are held" tabIndex={0}>
      <table class="list stack leases" role="table">
        <caption class="hidden">Leases that are held</caption>
        <thead>
          <tr>
            <th scope="col">Lease</th>
            <th scope="col">Holds</th>
            <th scope="col">
              <Axis span={span} now={now} />
            </th>
            <th scope="col">Ends in</th>
          </tr>
        </thead>
        <tbody>
          {leases.map((a) => (
            <LeaseRow key={nameKey(a)} lease={a} span={span} now={now} />
          ))}
        </tbody>
      </table>
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

const classes: Record<Mark, string> = {
  "": "lease-plain",
  "renewal late": "lease-late",
  revoked: "lease-revoked",
  "declared end": "lease-plain",
};

function LeaseRow({ lease: a, span, now }: { lease: Allocation; span: Span; now: number }) {
  const mark = markOf(a, now);
  const place = placeOf(a, span);
  const who = a.principal?.user || a.owner;
  return (
    <tr class={classes[mark]} role="row">
      <th scope="row" role="rowheader">
        <AllocationLink of={a} />
        {who && (
          <div class="quiet">
            <bdi>{who}</bdi>
          </div>
        )}
      </th>
      <td role="cell" data-title="Holds">
        <Claims claims={a.claims} />
      </td>
      <td role="cell">
        <span class="lease-line" aria-hidden="true">
          <span
            class={`lease-bar${place.cut ? " lease-cut" : ""}`}
            style={{ insetInlineStart: `${place.left}%`, width: `${place.width}%` }}
          />
        </span>
        <span class="hidden">held for {spanText(now - Number(a.grantedLedgerMs))}</span>
      </td>
      <td class="lease-end" role="cell" data-title="Ends in">
        <Remaining ledgerMs={a.expiresLedgerMs} />
        {mark && <strong class="lease-mark"> {mark}</strong>}
        {a.revokedBy && (
          <div class="quiet">
            for <AllocationLink of={a.revokedBy} beside={a.namespace} />
          </div>
        )}
      </td>
    </tr>
  );
}
