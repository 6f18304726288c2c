// A value that follows another one once the user pauses.
import { useEffect, useState } from "preact/hooks";

/** How long a user may pause while writing before anything is asked, in milliseconds. */
const pause = 300;

/** useDelayed is the value that was last the same for a while. */
export function useDelayed<T>(value: T): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), pause);
    return () => clearTimeout(timer);
  }, [value]);
  return delayed;
}
