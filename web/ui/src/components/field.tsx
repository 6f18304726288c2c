// Fields of forms, each with its label and what is wrong with it.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  value: string;
  change: (value: string) => void;
  /** What is wrong; empty or absent if nothing is. */
  fault?: string;
  placeholder?: string;
  hint?: ComponentChildren;
  list?: string[];
}

/** TextField takes a line of text. */
export function TextField({ label, value, change, fault, placeholder, hint, list }: FieldProps) {
  const id = useId();
  return (
    <label class="field">
      {label}
      <input
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        list={list && `${id}-list`}
        aria-invalid={fault ? true : undefined}
        aria-describedby={fault ? `${id}-fault` : undefined}
        onInput={(e) => change(e.currentTarget.value)}
      />
      {list && (
        <datalist id={`${id}-list`}>
          {list.map((v) => (
            <option key={v} value={v} />
          ))}
        </datalist>
      )}
      {hint && <span class="hint">{hint}</span>}
      {fault && (
        <span id={`${id}-fault`} class="fault">
          {fault}
        </span>
      )}
    </label>
  );
}
