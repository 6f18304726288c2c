// Taking the items in a state from holders that have stopped renewing.
import type { ItemCount, ResetItem } from "#gen/item_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRead } from "../api/read";
import { useRight } from "../api/rights";
import { ConfirmDialog } from "../components/confirm";
import { useDelayed } from "../components/delayed";
import { TextField } from "../components/field";
import { AllocationLink } from "../components/names";
import { Answer } from "../components/states";
import { Ago } from "../components/time";
import { parseSpan } from "../requests/span";
import { statesOf } from "./cell";

interface ResetProps {
  count: ItemCount;
  /** The state of the items that are taken. */
  state: string;
}

/** ResetButton offers to take the items in a state from their holders. */
export function ResetButton({ count, state }: ResetProps) {
  const may = useRight("items.reset", [{ tree: count.tree, node: "" }]);
  const [open, setOpen] = useState(false);
  if (!offersChanges || !state || !may?.allowed) return null;
  return (
    <>
      <button onClick={() => setOpen(true)}>Reset…</button>
      {open && <ResetDialog count={count} state={state} close={() => setOpen(false)} />}
    </>
  );
}

function ResetDialog({ count, state, close }: ResetProps & { close: () => void }) {
  const { tree, resource } = count;
  const [idle, setIdle] = useState("1h");
  const [newState, setNewState] = useState("");
  const idleMs = parseSpan(idle);
  const request = { tree, resource, state, idleMs, newState };
  const carryOut = async () => {
    await api.items.resetItems(request);
  };
  const disabled = !newState || idleMs === undefined;
  return (
    <ConfirmDialog title="Take items from their holders" button="Take them" danger {...{ carryOut, close, disabled }}>
      <div class="filters">
        <TextField
          label="Not renewed for"
          value={idle}
          change={setIdle}
          fault={idleMs === undefined ? "Write a time such as 2h; 0s takes all." : ""}
        />
        <TextField label="New state" value={newState} change={setNewState} list={statesOf(count).map(([name]) => name)} />
      </div>
      {disabled ? (
        <p class="quiet">With a time and a new state, the items that would be taken are listed here.</p>
      ) : (
        <ResetPlan request={request} />
      )}
      <p>Allocations become smaller, and end with their last item. Requests that wait for the new state are granted.</p>
    </ConfirmDialog>
  );
}

interface ResetRequest {
  tree: string;
  resource: string;
  state: string;
  idleMs: bigint | undefined;
  newState: string;
}

/** ResetPlan is what the server would take now. */
function ResetPlan({ request }: { request: ResetRequest }) {
  const { tree, resource, state, idleMs, newState } = request;
  const key = useDelayed(`reset ${tree} ${resource} ${state} ${idleMs} ${newState}`);
  const read = useRead(key, { tree, items: true }, async (_, signal) => {
    const { items } = await api.items.resetItems({ ...request, dryRun: true }, { signal });
    return { items, read: undefined };
  });
  return <Answer read={read}>{({ items }) => <Taken items={items} />}</Answer>;
}

/** How many items are named. */
const shown = 10;

/** Taken names items that would be taken. */
function Taken({ items }: { items: ResetItem[] }) {
  if (!items.length) return <p>No item has been kept without a renewal for so long.</p>;
  return (
    <>
      <p>{items.length === 1 ? "This item would be taken:" : `These ${items.length} items would be taken:`}</p>
      <ul>
        {items.slice(0, shown).map((i) => (
          <li key={i.name}>
            <bdi>{i.name}</bdi>: {i.allocation && <AllocationLink of={i.allocation} />}
            {i.owner && (
              <>
                {" "}
                for <bdi>{i.owner}</bdi>
              </>
            )}
            , not renewed for <Ago ledgerMs={i.updatedLedgerMs} />
          </li>
        ))}
        {items.length > shown && <li>and {items.length - shown} more</li>}
      </ul>
    </>
  );
}
