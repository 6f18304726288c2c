// Waiting requests as a table whose rows open.
import type { Allocation, WaitingRequest } from "#gen/allocation_pb";
import type { Violation } from "#gen/decision_pb";
import { amountText } from "../api/units";
import { AskedClaims, ResizeClaims } from "../components/claims";
import { filter } from "../components/filters";
import { Icon } from "../components/icon";
import { AllocationLink, NodeLink } from "../components/names";
import { Ago } from "../components/time";
import { lineText, waitingOf } from "../requests/allocation";
import { nameKey } from "../requests/name";
import { toBlocker } from "../requests/violation";
import { setQuery } from "../router";
import { CertainBy, Explained, positionsOf } from "./queue_request";

const columns = ["Position", "Request", "Asks for", "Waiting", "Blocked by"];

interface TableProps {
  caption: string;
  requests: WaitingRequest[];
  /** Rows say when they are granted at the latest, which is expensive for the server. */
  certain?: boolean;
}

/** QueueTable lists requests; the address says which one is open. */
export function QueueTable({ caption, requests, certain }: TableProps) {
  const titles = certain ? [...columns, "Certain by"] : columns;
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class="list stack queue" role="table">
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map((r) => (
            <QueueRow key={nameKey(r.allocation!)} waiting={r} certain={certain} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function QueueRow({ waiting, certain }: { waiting: WaitingRequest; certain?: boolean }) {
  const request = waiting.allocation!;
  const key = nameKey(request);
  const open = filter("open") === key;
  const at = waitingOf(request);
  return (
    <>
      <tr role="row" class={open ? "queue-open" : undefined}>
        <td role="cell">
          <div class="queue-position">
            <button
              class="bare"
              aria-expanded={open}
              aria-label={`Who is in the way of ${request.id}, and what would help`}
              onClick={() => setQuery({ open: open ? undefined : key })}
            >
              <Icon name="more" />
            </button>
            <Positions request={request} />
          </div>
        </td>
        <td role="cell" data-title="Request">
          <AllocationLink of={request} />
          <Who of={request} />
        </td>
        <td role="cell" data-title="Asks for">
          {request.resize ? <ResizeClaims request={request} /> : <AskedClaims request={request} />}
        </td>
        <td role="cell" data-title="Waiting" class="nowrap">
          {at && <Ago ledgerMs={at.arrivedLedgerMs} />}
        </td>
        <td role="cell" data-title="Blocked by">
          <BlockedBy violations={waiting.decision?.violations ?? []} />
        </td>
        {certain && (
          <td role="cell" data-title="Certain by">
            <CertainBy of={request} bare />
          </td>
        )}
      </tr>
      {open && (
        <tr role="row" class="queue-details">
          <td role="cell" colSpan={columns.length + Number(!!certain)}>
            <Explained of={request} />
          </td>
        </tr>
      )}
    </>
  );
}

function Positions({ request }: { request: Allocation }) {
  return (
    <span>
      {positionsOf(request).map((a) => (
        <span key={a.alternative} class="queue-line">
          <strong>{String(a.position)}</strong>{" "}
          <span class="quiet">
            <bdi>{lineText(a.line)}</bdi>
            {a.alternative > 0 && ` (alternative ${a.alternative})`}
          </span>
        </span>
      ))}
    </span>
  );
}

/** Who is for whom a request was made. */
function Who({ of: a }: { of: Allocation }) {
  const names = [a.principal?.user || a.owner, a.principal?.application].filter(Boolean);
  if (!names.length) return null;
  return (
    <div class="quiet">
      <bdi>{names.join(", ")}</bdi>
    </div>
  );
}

/** How many limits in the way a row names. */
const most = 3;

/** BlockedBy names the limits in the way, in short; the opened row has their numbers. */
function BlockedBy({ violations }: { violations: Violation[] }) {
  if (!violations.length) return <span class="quiet">nothing now</span>;
  return (
    <ul class="claims">
      {violations.slice(0, most).map((v, i) => (
        <li key={i}>
          {toBlocker(v, amountText).hasNode ? <NodeLink tree={v.tree} node={v.node} /> : <bdi>{v.tree}</bdi>} <Missing of={v} />
        </li>
      ))}
      {violations.length > most && <li class="quiet">and {violations.length - most} more</li>}
    </ul>
  );
}

function Missing({ of: v }: { of: Violation }) {
  const { limit, text } = toBlocker(v, amountText);
  if (v.neverFits) return <span class="pill pill-bad">larger than the limit</span>;
  if (!limit) return <span class="pill pill-nearly">cordoned</span>;
  return (
    <span class="quiet">
      <bdi>{v.missing > 0n ? `${amountText(v.tree, v.resource, v.missing)} ${limit} missing` : text}</bdi>
    </span>
  );
}
