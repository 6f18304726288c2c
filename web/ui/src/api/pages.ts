// Lists that come in pages.
import { useState } from "preact/hooks";
import type { ReadInfo } from "#gen/common_pb";
import type { Interest } from "./live";
import { useRead, type Fresh, type Read } from "./read";

/** Page is one page of an answer. */
export interface Page<T> {
  rows: T[];
  /** Empty on the last page. */
  next: string;
  read?: ReadInfo;
  /** True if the list has only what the user may see. */
  filtered?: boolean;
}

/** Pages are those pages of a list that are shown. */
export interface Pages<T> extends Read<Page<T>> {
  /** Shows one page more; absent if there is none. */
  more?: () => void;
}

/**
 * usePages reads the first pages of a list, and all of them again when something of interest changed. A list that
 * changes between two pages may repeat a row or miss one until the next time.
 */
export function usePages<T>(
  key: string,
  interest: Interest,
  ask: (fresh: Fresh, token: string, signal: AbortSignal) => Promise<Page<T>>,
): Pages<T> {
  const [shown, setShown] = useState({ key, count: 1 });
  const count = shown.key === key ? shown.count : 1;
  const read = useRead<Page<T>>(`${key} ${count}`, interest, async (fresh, signal) => {
    const all: Page<T> = { rows: [], next: "" };
    for (let i = 0; i < count; i++) {
      const page = await ask(fresh, all.next, signal);
      Object.assign(all, page, { rows: [...all.rows, ...page.rows] });
      if (!page.next) break;
    }
    return all;
  });
  const more = read.data?.next ? () => setShown({ key, count: count + 1 }) : undefined;
  return { ...read, more };
}
