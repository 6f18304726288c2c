// A command of the command line that does the same.
import { useState } from "preact/hooks";

/** Command shows a command, and copies it on demand. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied("copied");
    } catch {
      setCopied("the browser refuses: select the text and copy it");
    }
  };
  return (
    <span class="command">
      <code tabIndex={0}>
        {text.split(/ (?=--)/).map((part, i) => (
          <>
            {i > 0 && " "}
            <span>{part}</span>
          </>
        ))}
      </code>
      <button type="button" onClick={() => void copy()}>
        Copy
      </button>
      <span role="status">{copied}</span>
    </span>
  );
}
