// One item: its state, who has it, and for how long.
import type { Item } from "#gen/item_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRight } from "../api/rights";
import { ConfirmDialog } from "../components/confirm";
import { AllocationLink } from "../components/names";
import { Instant, Remaining } from "../components/time";

interface DetailsProps {
  item: Item;
  /** States that items of the resource are in. */
  states: string[];
  again: () => void;
}

/** ItemDetails shows an item, and offers to change the state of one that is not held. */
export function ItemDetails({ item, states, again }: DetailsProps) {
  const name = item.name?.name ?? "";
  return (
    <section class="card item-details" aria-live="polite">
      <h2>
        <bdi>{name}</bdi>
      </h2>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <bdi>{item.state}</bdi>, since <Instant at={item.updatedAt} exact />
        </dd>
        <dt>Held by</dt>
        <dd>
          {item.allocation ? <AllocationLink of={item.allocation} /> : "nothing"}
          {item.owner && (
            <>
              {" "}
              for <bdi>{item.owner}</bdi>
            </>
          )}
        </dd>
        {item.heldUntilLedgerMs > 0n && (
          <>
            <dt>Ends</dt>
            <dd>
              in <Remaining ledgerMs={item.heldUntilLedgerMs} />, unless it is renewed
            </dd>
          </>
        )}
        {item.expiresLedgerMs > 0n && (
          <>
            <dt>Removed</dt>
            <dd>
              in <Remaining ledgerMs={item.expiresLedgerMs} />, unless it is held
            </dd>
          </>
        )}
        {item.leaving && (
          <>
            <dt>Leaves</dt>
            <dd>it is no longer configured, and is removed when it is returned</dd>
          </>
        )}
      </dl>
      {offersChanges && !item.allocation && <ChangeState key={name} item={item} states={states} again={again} />}
    </section>
  );
}

function ChangeState({ item, states, again }: DetailsProps) {
  const may = useRight("items.clean", [{ tree: item.name?.tree ?? "", node: "" }]);
  const [state, setState] = useState("");
  const [open, setOpen] = useState(false);
  if (!may?.allowed) return null;
  const carryOut = async () => {
    await api.items.updateItems({ updates: [{ item: item.name, state }] });
    again();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (state && state !== item.state) setOpen(true);
  };
  return (
    <form class="filters" onSubmit={submit}>
      <label>
        New state
        <input list="item-states" value={state} maxLength={63} onInput={(e) => setState(e.currentTarget.value)} />
      </label>
      <datalist id="item-states">
        {states.map((s) => (
          <option key={s} value={s} />
        ))}
      </datalist>
      <button>Change…</button>
      {open && (
        <ConfirmDialog title="Change the state" button="Change it" carryOut={carryOut} close={() => setOpen(false)}>
          <p>
            <bdi>{item.name?.name}</bdi> becomes <bdi>{state}</bdi> from <bdi>{item.state}</bdi>. Requests that wait for
            an item in the new state are granted at once.
          </p>
        </ConfirmDialog>
      )}
    </form>
  );
}
