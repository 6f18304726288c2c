// One waiting request in the queue.
import type { Allocation, WaitingRequest } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { AskedClaims, ResizeClaims } from "../components/claims";
import { filter } from "../components/filters";
import { InTheWay } from "../components/in_the_way";
import { AllocationLink } from "../components/names";
import { nameKey, type Named } from "../requests/name";
import { RemedyNote } from "../components/remedy";
import { Answer } from "../components/states";
import { Ago, Instant } from "../components/time";
import { PrincipalText } from "../components/principal";
import { alternativesOf, positionText, waitingOf } from "../requests/allocation";
import { setQuery } from "../router";

/** QueuedRequest is one request with what is in its way; who is there is read when it is opened. */
export function QueuedRequest({ waiting }: { waiting: WaitingRequest }) {
  const request = waiting.allocation!;
  const open = filter("open") === nameKey(request);
  const at = waitingOf(request);
  return (
    <li class="request">
      <div class="request-what">
        <h3>
          <AllocationLink of={request} />
        </h3>
        {request.resize ? <ResizeClaims request={request} /> : <AskedClaims request={request} />}
        <p class="quiet">
          {at && (
            <>
              waits for <Ago ledgerMs={at.arrivedLedgerMs} />, since <Instant at={at.arrivedAt} />
            </>
          )}
          <PrincipalText allocation={request} />
        </p>
      </div>
      <div class="request-why">
        <Positions request={request} />
        {open ? <Explained of={request} /> : waiting.decision && <InTheWay decision={waiting.decision} />}
        <button
          class="link"
          aria-expanded={open}
          onClick={() => setQuery({ open: open ? undefined : nameKey(request) })}
        >
          {open ? "Show less" : "Who is in the way, and what would help"}
        </button>
      </div>
    </li>
  );
}

/** Positions says where a request is in the queue, for each of its alternatives. */
export function Positions({ request }: { request: Allocation }) {
  const resize = request.resize?.waiting;
  const all = resize ? [{ alternative: 0, position: resize.position, line: resize.line }] : alternativesOf(request);
  return (
    <p class="position">
      {all
        .filter((a) => a.position > 0n)
        .map((a) => (
          <span key={a.alternative}>
            Position <bdi>{positionText(a.position, a.line)}</bdi>
            {a.alternative > 0 && ` (alternative ${a.alternative})`}
          </span>
        ))}
    </p>
  );
}

/** Explained is what is in the way of a waiting request, who, and what would help. */
export function Explained({ of: { namespace, id } }: { of: Named }) {
  const explained = useRead(`explain ${namespace} ${id}`, { queue: true, usage: true }, (read, signal) =>
    api.allocations.explain({ namespace, question: { case: "id", value: id }, read }, { signal }),
  );
  return (
    <Answer read={explained}>
      {(e) =>
        e.decision && (
          <>
            <InTheWay decision={e.decision} />
            <RemedyNote decision={e.decision} />
          </>
        )
      }
    </Answer>
  );
}
