// Reads of what changes without an entry in the log, such as how far a member is behind or how long a lease lasts.
import { useEffect, useRef } from "preact/hooks";

/** useRepeat calls again and again while the tab is shown. */
export function useRepeat(call: () => void, everyMs: number): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
