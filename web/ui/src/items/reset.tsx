// Taking the items in a state from holders that have stopped renewing.
import type { Item, ItemCount } from "#gen/item_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRead } from "../api/read";
import { useRight } from "../api/rights";
import { ConfirmDialog } from "../components/confirm";
import { TextField } from "../components/field";
import { AllocationLink } from "../components/names";
import { Answer } from "../components/states";
import { Ago, ledgerNow } from "../components/time";
import { parseSpan } from "../requests/span";
import { statesOf } from "./cell";
import { listItems } from "./list";

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
  const [to, setTo] = useState("");
  const idleMs = parseSpan(idle);
  const read = useRead(`items to reset ${tree} ${resource} ${state}`, { tree, items: true }, (fresh, signal) =>
    listItems({ tree, resource, state }, fresh, signal),
  );
  const carryOut = async () => {
    await api.items.resetItems({ tree, resource, state, idleMs, to });
  };
  const disabled = !to || idleMs === undefined;
  return (
    <ConfirmDialog title="Take items from their holders" button="Take them" {...{ carryOut, close, disabled }}>
      <div class="filters">
        <TextField
          label="Not renewed for"
          value={idle}
          change={setIdle}
          fault={idleMs === undefined ? "Write a time such as 2h; 0s takes all." : ""}
        />
        <TextField label="New state" value={to} change={setTo} list={statesOf(count).map(([name]) => name)} />
      </div>
      <Answer read={read}>{({ items, more }) => <Taken items={items} more={more} idleMs={idleMs ?? 0n} />}</Answer>
      <p>Allocations become smaller, and end with their last item. Requests that wait for the new state are granted.</p>
    </ConfirmDialog>
  );
}

/** How many items are named. */
const shown = 10;

/** Taken says which of the items would be taken now. */
function Taken({ items, more, idleMs }: { items: Item[]; more: boolean; idleMs: bigint }) {
  const latest = BigInt(Math.floor(ledgerNow() ?? 0)) - idleMs;
  const taken = items.filter((i) => i.allocation && i.updatedLedgerMs <= latest);
  return (
    <>
      <p>
        Now these are {more && "at least "}
        {taken.length} items{taken.length > 0 && ", held by"}:
      </p>
      <ul>
        {taken.slice(0, shown).map((i) => (
          <li key={i.name?.name}>
            <bdi>{i.name?.name}</bdi>: <AllocationLink id={i.allocation} />
            {i.owner && (
              <>
                {" "}
                for <bdi>{i.owner}</bdi>
              </>
            )}
            , not renewed for <Ago ledgerMs={i.updatedLedgerMs} />
          </li>
        ))}
        {taken.length > shown && <li>and {taken.length - shown} more</li>}
      </ul>
    </>
  );
}
