// What the record of an allocation says beside its claims.
import { AllocationState, type Allocation } from "#gen/allocation_pb";
import type { Preempted } from "#gen/decision_pb";
import type { ComponentChildren } from "preact";
import { amountText } from "../api/units";
import { AllocationLink, NodeLink } from "../components/names";
import { Ago, Instant, Remaining } from "../components/time";
import { span } from "../format";
import { hasEnded, reasonText } from "../requests/allocation";

/** AllocationFacts lists for whom it is, how long it lasts, and who gave way. */
export function AllocationFacts({ allocation: a }: { allocation: Allocation }) {
  const who = a.principal;
  const held = a.state === AllocationState.HELD;
  return (
    <dl class="facts">
      <Fact name="User" show={!!who?.user}>
        <bdi>{who?.user}</bdi>
      </Fact>
      <Fact name="Groups" show={!!who?.groups.length}>
        <bdi>{who?.groups.join(", ")}</bdi>
      </Fact>
      <Fact name="Application" show={!!who?.application}>
        <bdi>{who?.application}</bdi>
      </Fact>
      <Fact name="Owner" show={!!a.owner}>
        <bdi>{a.owner}</bdi>
      </Fact>
      <Fact name="Priority" show={a.priority !== 0n}>
        {String(a.priority)}
      </Fact>
      <Fact name="Granted" show={a.fence > 0n}>
        <Instant at={a.grantedAt} exact />
        {!hasEnded(a.state) && (
          <>
            , <Ago ledgerMs={a.grantedLedgerMs} /> ago
          </>
        )}
        {a.forced && ", by force: limits did not count"}
      </Fact>
      <Fact name="Alternative" show={a.alternative > 0}>
        {a.alternative} of its request
      </Fact>
      <Fact name="Namespace" show>
        <bdi>{a.namespace}</bdi>
      </Fact>
      <Fact name="Fence" show={a.fence > 0n}>
        {String(a.fence)}
      </Fact>
      <Fact name="Generation" show={a.generation > 0n}>
        {String(a.generation)}
      </Fact>
      <Fact name="Split from" show={!!a.splitFrom}>
        {a.splitFrom && <AllocationLink of={a.splitFrom} beside={a.namespace} />}
      </Fact>
      <Fact name="Reserved" show={a.state === AllocationState.RESERVED}>
        ends in <Remaining ledgerMs={a.reservedUntilLedgerMs} /> unless it is confirmed
      </Fact>
      <Fact name="Lease" show={a.ttlMs > 0n}>
        {span(a.ttlMs)}
        {held && !a.revokedBy && (
          <>
            : ends in <Remaining ledgerMs={a.expiresLedgerMs} /> unless it is renewed
          </>
        )}
      </Fact>
      <Fact name="Declared time" show={a.forMs > 0n}>
        {span(a.forMs)}
        {held && a.endsLedgerMs > 0n && (
          <>
            : ends in <Remaining ledgerMs={a.endsLedgerMs} />
          </>
        )}
      </Fact>
      <Fact name="Ended" show={hasEnded(a.state)}>
        <Instant at={a.endedAt} />
      </Fact>
      <End allocation={a} />
      <Fact name={a.fence > 0n ? "Preempted" : "Revoked"} show={a.preempted.length > 0}>
        <Victims list={a.preempted} />
      </Fact>
    </dl>
  );
}

/** Fact is a name and its value, if there is one. */
function Fact({ name, show, children }: { name: string; show: boolean; children: ComponentChildren }) {
  if (!show) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function End({ allocation: a }: { allocation: Allocation }) {
  const why = reasonText(a.reason, amountText);
  return (
    <>
      <Fact name="Revoked" show={!!a.revokedBy && !a.preemptedBy}>
        for {a.revokedBy && <AllocationLink of={a.revokedBy} beside={a.namespace} />}: ends in <Remaining ledgerMs={a.expiresLedgerMs} />
      </Fact>
      <Fact name="Preempted" show={!!a.preemptedBy}>
        for {a.preemptedBy && <AllocationLink of={a.preemptedBy} beside={a.namespace} />}
      </Fact>
      <Fact name="Why" show={!!why}>
        <bdi>{why}</bdi>
      </Fact>
    </>
  );
}

/** Victims lists those that gave way, each with the reason. */
export function Victims({ list }: { list: Preempted[] }) {
  return (
    <ul class="claims">
      {list.map((v) => {
        const why = reasonText(v.reason, amountText);
        return (
          <li key={`${v.id} ${v.tree}`}>
            {v.id ? <AllocationLink of={v} /> : "an allocation"} at <NodeLink tree={v.tree} node={v.node} />
            {why && <bdi>: {why}</bdi>}
          </li>
        );
      })}
    </ul>
  );
}
