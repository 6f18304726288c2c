// Long leases learn of a revocation by a stream, short ones by their next renewal soon enough.

import type { Client } from "./client.js";
import { sleep } from "./clock.js";
import { AllocationChangeKind } from "./gen/quorate/v1/event_pb.js";
import { nameOf, type Lease } from "./lease.js";

/** The TTL above which leases are watched. */
const watchedTTLMs = 10_000;
/** The most ids that a stream can be limited to. With more leases the stream is not limited. */
const mostWatched = 1000;
/** Lets leases that are added one after the other share one new stream. */
const restartPauseMs = 1000;
/** The pause after a stream that was refused. */
const refusedPauseMs = 10_000;

const relevant = new Set([
  AllocationChangeKind.REVOKED, AllocationChangeKind.ENDED, AllocationChangeKind.SHRUNK, AllocationChangeKind.RESIZED,
  AllocationChangeKind.RESIZE_WAITING, AllocationChangeKind.RESIZE_DROPPED,
]);

/**
 * Follows the revocations and ends of long leases. An event only makes the renewer renew the lease, and the answer to
 * that counts. The next renewal therefore learns what a broken stream missed, and errors of the stream are not
 * reported.
 */
export class RevocationWatcher {
  readonly #client: Client;
  readonly #renewNow: (lease: Lease) => void;
  readonly #watched = new Map<string, Lease>();
  #isRunning = false;
  #restart = new AbortController();
  #isRestarting = false;

  constructor(client: Client, renewNow: (lease: Lease) => void) {
    this.#client = client;
    this.#renewNow = renewNow;
  }

  /** Watches a lease if its TTL is long. */
  add(lease: Lease): void {
    if (lease.ttlMs <= watchedTTLMs) {
      return;
    }
    this.#watched.set(nameOf(lease), lease);
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#watchLoop();
    } else if (!this.#isRestarting) {
      this.#isRestarting = true;
      const restart = this.#restart;
      setTimeout(() => restart.abort(), restartPauseMs);
    }
  }

  /** Stops watching a lease. The stream continues with more ids than necessary, and ends with the last lease. */
  drop(lease: Lease): void {
    if (this.#watched.get(nameOf(lease)) === lease) {
      this.#watched.delete(nameOf(lease));
    }
    if (this.#watched.size === 0) {
      this.#restart.abort();
    }
  }

  async #watchLoop(): Promise<void> {
    let afterIndex = 0n;
    let afterNumber = 0;
    while (this.#watched.size > 0) {
      this.#restart = new AbortController();
      this.#isRestarting = false;
      const { signal } = this.#restart;
      const allocations = this.#watched.size <= mostWatched
        ? [...this.#watched.values()].map(({ namespace, id }) => ({ namespace, id }))
        : [];
      try {
        for await (const event of this.#client.watch({ allocations, afterIndex, afterNumber }, { signal })) {
          [afterIndex, afterNumber] = [event.index, event.number];
          const change = event.payload.case === "change" ? event.payload.value : undefined;
          const lease = change?.allocation && this.#watched.get(nameOf(change.allocation));
          if (lease && relevant.has(change.kind)) {
            this.#renewNow(lease);
          }
        }
      } catch {
        // It was refused, perhaps because the servers forgot its position.
        [afterIndex, afterNumber] = [0n, 0];
        await sleep(refusedPauseMs, signal).catch(() => undefined);
      }
    }
    this.#isRunning = false;
  }
}
