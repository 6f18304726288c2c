// Changing the configuration: first the plan, then a reason, then the change exactly as it was planned.
import { useEffect, useState } from "preact/hooks";
import type { ConfigurationResult } from "#gen/tree_pb";
import { toFailure, type Failure } from "../api/failure";
import { Dialog, DialogActions } from "./dialog";
import { Plan } from "./plan";
import { FailureNote, Skeleton } from "./states";

/** How a change is to be carried out. */
export interface ChangeOptions {
  dryRun: boolean;
  reason: string;
  /** The revision that was planned on: the server refuses the change if the configuration changed meanwhile. */
  expectedRevision?: bigint;
}

interface ChangeProps {
  title: string;
  /** Calls the server, for the plan and then for the change. */
  call: (options: ChangeOptions) => Promise<ConfigurationResult | undefined>;
  close: () => void;
  done?: (result: ConfigurationResult) => void;
}

/** focusOnce gives a field the focus when it appears. */
const focusOnce = (field: HTMLElement | null) => field?.focus();

/** ChangeDialog plans a change when it opens, and carries it out on demand. */
export function ChangeDialog({ title, call, close, done }: ChangeProps) {
  const [plan, setPlan] = useState<ConfigurationResult>();
  const [failure, setFailure] = useState<Failure>();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);

  const attempt = async (options: ChangeOptions) => {
    setBusy(true);
    setFailure(undefined);
    try {
      return await call(options);
    } catch (thrown) {
      setFailure(toFailure(thrown));
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  const replan = async () => setPlan(await attempt({ dryRun: true, reason }));
  const carryOut = async (event: Event) => {
    event.preventDefault();
    const result = await attempt({ dryRun: false, reason, expectedRevision: plan?.revision });
    if (!result) return;
    done?.(result);
    close();
  };
  useEffect(() => void replan(), []);

  return (
    <Dialog title={title} close={close}>
      {failure && <FailureNote failure={failure} again={() => void replan()} />}
      {failure?.problem?.reason === "REVISION_MISMATCH" && (
        <button onClick={() => void replan()}>Plan again on the present configuration</button>
      )}
      {plan && <Plan result={plan} />}
      {!plan && !failure && <Skeleton />}
      {plan && plan.changes.length > 0 && (
        <form onSubmit={carryOut}>
          <label class="wide">
            Reason, for the history
            <input
              ref={focusOnce}
              value={reason}
              maxLength={1024}
              onInput={(e) => setReason(e.currentTarget.value)}
              required
            />
          </label>
          <DialogActions button="Apply change" close={close} disabled={busy} />
        </form>
      )}
    </Dialog>
  );
}
