// Filters of lists: each is a value of the address, so that a list can be sent to a colleague.
import { useEffect, useRef, useState } from "preact/hooks";
import { route, setQuery, type Query } from "../router";

/** How long a user may pause while typing before a list is read again, in milliseconds. */
const typingPause = 350;

/** filter is a value of the address; empty for none. */
export function filter(name: string): string {
  return route.value.query.get(name) ?? "";
}

/** useTypedFilter is a filter that is typed: the address follows once the user pauses. */
export function useTypedFilter(name: string, clears: Query = {}): [string, (text: string) => void] {
  const applied = filter(name);
  const [text, setText] = useState(applied);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setText(applied), [applied]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ ...clears, [name]: next.trim() || undefined }), typingPause);
  };
  return [text, type];
}
