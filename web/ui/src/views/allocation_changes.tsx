// Releasing, cancelling and confirming an allocation, where the page offers changes.
import { AllocationState, type Allocation } from "#gen/allocation_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRight } from "../api/rights";
import { AskedClaims, Claims } from "../components/claims";
import { ConfirmDialog } from "../components/confirm";
import { Victims } from "./allocation_facts";

type Action = "release" | "cancel" | "confirm";

function wordFor(action: Action, state: AllocationState): string {
  if (action === "cancel") return state === AllocationState.WAITING ? "Take out of the queue" : "Cancel";
  return action === "release" ? "Release" : "Confirm";
}

function actionsOf(state: AllocationState): Action[] {
  switch (state) {
    case AllocationState.HELD:
      return ["release"];
    case AllocationState.RESERVED:
      return ["confirm", "cancel"];
    case AllocationState.WAITING:
      return ["cancel"];
    default:
      return [];
  }
}

interface Props {
  allocation: Allocation;
  changed: () => void;
}

/** AllocationChanges offers what the user may do with an allocation. */
export function AllocationChanges({ allocation, changed }: Props) {
  const actions = actionsOf(allocation.state);
  return offersChanges && actions.length ? <Offer {...{ allocation, changed, actions }} /> : null;
}

function Offer({ allocation: a, changed, actions }: Props & { actions: Action[] }) {
  const [action, setAction] = useState<Action>();
  const [result, setResult] = useState("");
  const places = a.claims.map((c) => ({ tree: c.tree, node: c.placed || c.node }));
  const right = useRight("hold.operate", places);
  if (!right) return null;
  if (!right.allowed && right.user !== a.owner) {
    return (
      <p class="quiet">
        To end it takes the right <code>hold.operate</code> where it holds, or to be its owner.
      </p>
    );
  }
  const done = (text: string) => {
    setResult(text);
    changed();
  };
  return (
    <div class="actions">
      {actions.map((name) => (
        <button key={name} onClick={() => setAction(name)}>
          {wordFor(name, a.state)}…
        </button>
      ))}
      <span role="status">{result}</span>
      {action && <ActionDialog {...{ action, allocation: a, done, close: () => setAction(undefined) }} />}
    </div>
  );
}

interface ActionProps {
  action: Action;
  allocation: Allocation;
  done: (text: string) => void;
  close: () => void;
}

function ActionDialog({ action, allocation, done, close }: ActionProps) {
  const carryOut = async () => done(await call(action, allocation));
  const word = wordFor(action, allocation.state);
  return (
    <ConfirmDialog title={`${word}: ${allocation.id}`} button={word} danger={action !== "confirm"} {...{ carryOut, close }}>
      <Consequences action={action} allocation={allocation} />
    </ConfirmDialog>
  );
}

// call carries an action out on the allocation that is shown, not on another one that has its id meanwhile.
async function call(action: Action, { namespace, id, fence }: Allocation): Promise<string> {
  switch (action) {
    case "release":
      return (await api.allocations.release({ namespace, id, fence })).write?.repetition ? "It had ended before." : "Released.";
    case "confirm":
      return (await api.allocations.confirm({ namespace, id, fence })).write?.repetition ? "It was held before." : "Confirmed.";
    case "cancel": {
      const { restored } = await api.allocations.cancel({ namespace, id, fence });
      return restored.length ? `Cancelled. Held again: ${restored.map((r) => r.id).join(", ")}.` : "Cancelled.";
    }
  }
}

function Consequences({ action, allocation: a }: { action: Action; allocation: Allocation }) {
  const waits = a.state === AllocationState.WAITING;
  if (waits) {
    return (
      <>
        <p>The request leaves the queue. It loses its position, and asking again puts it at the end. It asks for:</p>
        <AskedClaims request={a} />
      </>
    );
  }
  return (
    <>
      <p>{action === "confirm" ? "It becomes held until it is released:" : "This is given back at once, and requests that wait for it may be granted:"}</p>
      <Claims claims={a.claims} />
      {action === "cancel" && a.preempted.length > 0 && (
        <>
          <p>These made room for it. They are held again if the limits still allow it, all or none:</p>
          <Victims list={a.preempted} />
        </>
      )}
      {action === "release" && <p>Its holder is not asked. What it runs goes on unless the holder watches its allocation.</p>}
    </>
  );
}
