// Dialogs: the browser keeps the focus inside, closes with Escape, and gives the focus back.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icon";

/** What has the focus at first: the first field, or otherwise what changes nothing. */
const first = "input, select, textarea, [data-cancel]";

/** Dialog is open as long as it is shown. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    ref.current?.querySelector<HTMLElement>(first)?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={close}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="bare" aria-label="Close" onClick={() => ref.current?.close()}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface DialogActionsProps {
  /** What the button says: a verb. */
  button: string;
  close: () => void;
  disabled?: boolean;
  /** It takes something away. */
  danger?: boolean;
}

/** DialogActions are the buttons at the end of the form of a dialog. */
export function DialogActions({ button, close, disabled, danger }: DialogActionsProps) {
  return (
    <div class="dialog-actions">
      <button type="button" data-cancel onClick={close}>
        Cancel
      </button>
      <button class={danger ? "danger" : "primary"} disabled={disabled}>
        {button}
      </button>
    </div>
  );
}
