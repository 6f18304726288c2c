// Where a request is in the queue, and what is in its way.
import { AllocationState, type Allocation } from "#gen/allocation_pb";
import { AskAgainLink } from "../components/ask_again";
import { AskedClaims, ResizeClaims } from "../components/claims";
import { Part } from "../components/part";
import { Ago, Instant, Remaining } from "../components/time";
import { hasEnded, waitingOf } from "../requests/allocation";
import { Explained, Positions } from "./queue_request";

/** Asks is what a request, or a resize of an allocation, waits for, and how long. */
export function Asks({ allocation: a }: { allocation: Allocation }) {
  const at = waitingOf(a);
  return (
    <Part title={a.resize ? "Waits to be resized" : "Asks for"}>
      {a.resize ? <ResizeClaims request={a} /> : <AskedClaims request={a} />}
      {at && (
        <p class="quiet">
          Waits for <Ago ledgerMs={at.arrivedLedgerMs} />, since <Instant at={at.arrivedAt} exact />.
          {at.keepUntilLedgerMs > 0n && (
            <>
              {" "}
              Dropped in <Remaining ledgerMs={at.keepUntilLedgerMs} /> unless its caller repeats or renews it.
            </>
          )}
          {at.untilLedgerMs > 0n && (
            <>
              {" "}
              Gives up in <Remaining ledgerMs={at.untilLedgerMs} />.
            </>
          )}
        </p>
      )}
      {!a.resize && <AskAgainLink allocation={a} />}
    </Part>
  );
}

/** InQueue is where a request is in the queue, and what is in its way; nothing if it does not wait. */
export function InQueue({ allocation: a }: { allocation: Allocation }) {
  if (!waitingOf(a) || hasEnded(a.state) || (a.state !== AllocationState.WAITING && !a.resize)) return null;
  return (
    <Part title="What is in its way">
      <Positions request={a} />
      <Explained of={a} />
    </Part>
  );
}
