// Making a request that was looked at.
import type { AllocateRequest } from "#gen/allocation_pb";
import { useState } from "preact/hooks";
import { api } from "../api/clients";
import { useRight } from "../api/rights";
import { ConfirmDialog } from "../components/confirm";
import { Command } from "../components/command";
import { TextField } from "../components/field";
import { allocateCommand, type Draft } from "../requests/draft";
import { newId } from "../requests/id";
import { address, go } from "../router";

interface Props {
  draft: Draft;
  request: AllocateRequest;
}

/** RequestIt offers to make the request, to those who may. */
export function RequestIt({ draft, request }: Props) {
  const [open, setOpen] = useState(false);
  const places = [...request.claims, ...request.anyOf.flatMap((a) => a.claims)].map(({ tree, node }) => ({ tree, node }));
  const right = useRight("hold", places);
  if (!right) return null;
  if (!right.allowed) {
    return (
      <p class="quiet">
        To request it takes the right <code>hold</code> at each of its nodes.
      </p>
    );
  }
  return (
    <p>
      <button class="primary" onClick={() => setOpen(true)}>
        Request it…
      </button>
      {open && <RequestDialog draft={draft} request={request} close={() => setOpen(false)} />}
    </p>
  );
}

function RequestDialog({ draft, request, close }: Props & { close: () => void }) {
  const [id, setId] = useState(() => newId("ui"));
  const valid = /^[!-~]{1,128}$/.test(id);
  const carryOut = async () => {
    await api.allocations.allocate({ ...request, id });
    go(address("allocation", { id }));
  };
  return (
    <ConfirmDialog title="Request it" button="Request it" carryOut={carryOut} close={close} disabled={!valid}>
      <p>
        {draft.wait
          ? "It is held at once if it fits, and waits in the queue otherwise. A request that waits is dropped unless its caller repeats or renews it: this page does not."
          : "It is held at once if it fits, and denied otherwise."}
      </p>
      <TextField
        label="Id"
        value={id}
        change={setId}
        fault={valid ? "" : "an id has 1 to 128 visible ASCII characters"}
        hint="The same id never charges twice."
      />
      <p class="quiet">The same on the command line:</p>
      <Command text={allocateCommand(draft, id)} />
    </ConfirmDialog>
  );
}
