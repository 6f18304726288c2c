// Reads for views: they keep the last answer while a newer one is fetched, and repeat themselves when something changed.
import { signal as newSignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Consistency, type ReadInfo } from "#gen/common_pb";
import { toFailure, type Failure } from "./failure";
import { listen, position, type Interest } from "./live";
import { token } from "./session";

/** Options of a read: stale, so that it works without a leader, and not older than what the page knows of. */
export interface Fresh {
  consistency: Consistency;
  minIndex: bigint;
}

/** How many calls of reads have not been answered within a second: what is shown may be old. */
export const waitingReads = newSignal(0);

/** Read is the state of a read in a view. */
export interface Read<T> {
  /** The last answer to the present question; absent before the first. */
  data?: T;
  /** Why the last attempt failed; the data of an earlier one may still be there. */
  failure?: Failure;
  loading: boolean;
  /** Reads again at once. */
  again: () => void;
}

/** The shortest time between two answers to the same question, in milliseconds. */
const pause = 1000;

/**
 * useRead asks a question: once at first, again when the key changes, and again when something of interest changed,
 * at most once a second. The key names the question; the answer to another one is dropped.
 */
export function useRead<T extends { read?: ReadInfo }>(
  key: string,
  interest: Interest,
  ask: (fresh: Fresh, signal: AbortSignal) => Promise<T>,
): Read<T> {
  const [state, setState] = useState<{ key: string; data?: T; failure?: Failure }>({ key });
  const again = useRef<() => void>(() => {});
  const latest = useRef(ask);
  latest.current = ask;
  const question = `${key}\n${token.value}`;

  useEffect(() => {
    const reader = new Reader(question, (s) => latest.current(fresh(), s), setState);
    again.current = () => reader.request();
    const ignore = listen(interest, () => reader.request());
    reader.request();
    return () => {
      ignore();
      reader.stop();
    };
  }, [question]);

  const current = state.key === question ? state : { key };
  return {
    data: current.data,
    failure: current.failure,
    loading: !current.data && !current.failure,
    again: () => again.current(),
  };
}

/** fresh are the options of a read that begins now. */
export function fresh(): Fresh {
  return { consistency: Consistency.STALE, minIndex: position.peek()?.index ?? 0n };
}

/** Reader repeats one question on demand: one call at a time, and a pause between two. */
export class Reader<T> {
  private readonly controller = new AbortController();
  private running = false;
  private wanted = false;
  private data: T | undefined;

  constructor(
    private readonly key: string,
    private readonly ask: (signal: AbortSignal) => Promise<T>,
    private readonly show: (state: { key: string; data?: T; failure?: Failure }) => void,
  ) {}

  request(): void {
    this.wanted = true;
    if (!this.running) void this.run();
  }

  stop(): void {
    this.controller.abort();
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.wanted && !this.controller.signal.aborted) {
      this.wanted = false;
      await this.once();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.running = false;
  }

  private async once(): Promise<void> {
    let waits = 0;
    const slow = setTimeout(() => (waitingReads.value += waits = 1), pause);
    try {
      this.data = await this.ask(this.controller.signal);
      this.tell(undefined);
    } catch (thrown) {
      this.tell(toFailure(thrown));
    } finally {
      clearTimeout(slow);
      waitingReads.value -= waits;
    }
  }

  private tell(failure: Failure | undefined): void {
    if (!this.controller.signal.aborted) this.show({ key: this.key, data: this.data, failure });
  }
}
