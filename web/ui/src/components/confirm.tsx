// Asking before something is done that has no plan.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { toFailure, type Failure } from "../api/failure";
import { Dialog, DialogActions } from "./dialog";
import { FailureNote } from "./states";

interface ConfirmProps {
  title: string;
  /** What the button says. */
  button: string;
  /** Does it; a failure is shown, and the dialog stays open. */
  carryOut: () => Promise<void>;
  close: () => void;
  /** True while something that it needs is missing. */
  disabled?: boolean;
  /** It takes something away. */
  danger?: boolean;
  /** What will follow. */
  children: ComponentChildren;
}

/** ConfirmDialog says what will follow, and does it on demand. */
export function ConfirmDialog({ title, button, carryOut, close, disabled, danger, children }: ConfirmProps) {
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await carryOut();
      close();
    } catch (thrown) {
      setFailure(toFailure(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      {children}
      {failure && <FailureNote failure={failure} />}
      <form onSubmit={submit}>
        <DialogActions {...{ button, close, danger }} disabled={busy || disabled} />
      </form>
    </Dialog>
  );
}
