// What has changed since the page read it. One stream for the whole tab tells the reads of the page what to read
// again. It is closed while the tab is hidden, and continues where it was.
import { effect, signal, untracked } from "@preact/signals";
import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchChangesResponse } from "#gen/change_pb";
import { api } from "./clients";
import { concerns, type Interest } from "./interest";
import { token } from "./session";

/** Position says where the serving node stood when it last told. */
export interface Position {
  index: bigint;
  ledgerTimeMs: bigint;
  revision: bigint;
  servedBy: string;
  hasLeader: boolean;
  /** Milliseconds since the node last heard from a leader, when it told. */
  ageMs: bigint;
  /** When the page heard it, by the clock of this machine, in milliseconds. */
  heard: number;
}

/** The connection to the serving node. Refused: the user must sign in first. */
export const connection = signal<"connecting" | "live" | "lost" | "paused" | "refused">("connecting");

/** The last known position; absent before the first answer. */
export const position = signal<Position | undefined>(undefined);

export type { Interest };

interface Listener {
  interest: Interest;
  call: () => void;
}

const listeners = new Set<Listener>();

/** listen calls back on changes until the returned function is called. */
export function listen(interest: Interest, call: () => void): () => void {
  const listener = { interest, call };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The server tells at least every five seconds that it is there. */
const silence = 15_000;
const shortestPause = 500;
const longestPause = 5000;

function hear(message: WatchChangesResponse): void {
  position.value = {
    index: message.index,
    ledgerTimeMs: message.ledgerTimeMs,
    revision: message.revision,
    servedBy: message.servedBy,
    hasLeader: message.leaderKnown,
    ageMs: message.ageMs,
    heard: Date.now(),
  };
  connection.value = "live";
  for (const l of [...listeners]) if (concerns(message, l.interest)) l.call();
}

/** receive hears one stream to its end. */
async function receive(stop: AbortSignal): Promise<void> {
  const quiet = new AbortController();
  const signal = AbortSignal.any([stop, quiet.signal]);
  let timer = setTimeout(() => quiet.abort(), silence);
  try {
    const afterIndex = position.peek()?.index ?? 0n;
    for await (const message of api.changes.watchChanges({ afterIndex }, { signal, timeoutMs: 0 })) {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), silence);
      hear(message);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** follow opens one stream after the other until it is stopped, or the user must sign in. */
async function follow(stop: AbortSignal): Promise<void> {
  let pause = shortestPause;
  while (!stop.aborted) {
    const before = position.peek();
    try {
      await receive(stop);
    } catch (thrown) {
      if (stop.aborted) return;
      if (isRefusal(thrown)) {
        connection.value = "refused";
        return;
      }
    }
    if (stop.aborted) return;
    connection.value = "lost";
    pause = position.peek() === before ? Math.min(longestPause, pause * 2) : shortestPause;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function isRefusal(thrown: unknown): boolean {
  const { code } = ConnectError.from(thrown);
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}

/** start begins to follow changes: anew with each token, and only while the tab is shown. */
export function start(): void {
  const hidden = signal(document.hidden);
  document.addEventListener("visibilitychange", () => (hidden.value = document.hidden));
  effect(() => {
    void token.value;
    const stop = new AbortController();
    if (hidden.value) connection.value = "paused";
    // Untracked: a stream must not be replaced because of what it tells.
    else untracked(() => void follow(stop.signal));
    return () => stop.abort();
  });
}
