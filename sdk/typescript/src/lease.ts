// A lease that is renewed in the background.

import { now, Timer } from "./clock.js";
import { LeaseLostError, LeaseReleasedError, problemOf } from "./errors.js";
import type { Allocation } from "./gen/quorate/v1/allocation_pb.js";
import { EndReasonKind } from "./gen/quorate/v1/decision_pb.js";
import type { Client } from "./client.js";

// How long before the end of its TTL a lease ends for its holder: a tenth of the TTL and at most three seconds, unless
// the caller chose another.
export const marginPart = 10;
const longestMarginMs = 3000;
/** A lease is renewed when a third of its TTL is over. */
export const renewPart = 3;

/** Names an allocation or a lease in the whole cluster, as the key of a map. */
export function nameOf(named: { namespace: string; id: string }): string {
  return `${named.namespace} ${named.id}`;
}

/**
 * Says for whom a lease was revoked: the id of an allocation, after its namespace if that is another one, or a text;
 * empty if it was not revoked.
 */
export function revokerOf(record: Allocation): string {
  const by = record.revokedBy;
  if (!by) {
    return "";
  }
  if (!by.id) {
    return record.reason?.kind === EndReasonKind.DRAIN ? "a drain" : "another allocation";
  }
  return by.namespace === record.namespace ? by.id : nameOf(by);
}

/**
 * An allocation that is renewed in the background until it is released or lost.
 *
 * A holder that cannot renew does not know what the servers do meanwhile. A lease therefore ends for its holder by the
 * holder's own monotonic clock: a TTL after the last successful renewal was sent, less a margin. Until then no other
 * allocation holds the same, unless the lease was preempted without notice. In Node on Linux the clock counts the time
 * in which the machine is suspended, and a lease whose time is over ends within about a second after that; elsewhere it
 * may not. Use the fence where a late step must do no harm. A timer may be late when the thread is busy or the page is
 * in the background, so call check before each step that needs the lease: it looks at the clock.
 */
export class Lease implements AsyncDisposable {
  readonly #client: Client;
  readonly #marginMs: number | undefined;
  readonly #ending = new AbortController();
  readonly #revoking = new AbortController();
  readonly #timer = new Timer(() => this.expireIfDue());
  #record: Allocation;
  #safe = Infinity;
  #ends = Infinity;
  #failure: unknown;

  /** The id of the allocation. */
  readonly id: string;
  /** The namespace of the id. */
  readonly namespace: string;
  /**
   * The token of the grant. It is larger than that of every earlier grant, so a resource that the lease guards should
   * reject a token smaller than the largest that it has seen.
   */
  readonly fence: bigint;

  /** For use by this package. */
  constructor(client: Client, record: Allocation, fence: bigint, marginMs: number | undefined) {
    this.#client = client;
    this.#record = record;
    this.#marginMs = marginMs;
    this.id = record.id;
    this.namespace = record.namespace;
    this.fence = fence;
  }

  /**
   * Is aborted when the lease is over: when it was not renewed in time, when the servers say that it is lost, or at its
   * release. Its reason is a LeaseLostError or a LeaseReleasedError.
   */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Is aborted when the lease is revoked for another allocation. The lease still lasts for its time of grace, see
   * remainingMs; a holder that stops earlier should release it. The record names the other one.
   */
  get revoked(): AbortSignal {
    return this.#revoking.signal;
  }

  /** The record of the last answer. Do not change it. */
  get allocation(): Allocation {
    return this.#record;
  }

  /** The names of the items that the lease holds, in the order of its claims. */
  get items(): string[] {
    return this.#record.claims.flatMap((claim) => claim.items.map((item) => item.name));
  }

  /** Throws the reason of signal if the lease is over. */
  check(): void {
    this.expireIfDue();
    this.signal.throwIfAborted();
  }

  /** How long the lease is certain to be held without another renewal: 0 when it is over, Infinity without a TTL. */
  get remainingMs(): number {
    return this.signal.aborted ? 0 : Math.max(0, this.#safe - now());
  }

  /**
   * In how long the servers may end the lease at the earliest unless it is renewed. The holder must have stopped by
   * then. The lease is over a margin earlier.
   */
  get endsInMs(): number {
    return this.#ends - now();
  }

  /**
   * Releases the allocation. The lease is over at once, before the servers are called. itemState is the state of the
   * returned items; empty means the state that their resource defines. Releasing a lease that has ended is not an
   * error. If no server answers, the allocation ends with its TTL; release may be repeated.
   */
  async release(itemState = ""): Promise<void> {
    this.end(new LeaseReleasedError());
    try {
      await this.#client.allocations.release({ namespace: this.namespace, id: this.id, fence: this.fence, itemState });
    } catch (e) {
      if (problemOf(e)?.reason !== "FENCE_MISMATCH") { // it ended before, and another request has its id now
        throw e;
      }
    }
  }

  /** Releases the lease at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!(this.signal.reason instanceof LeaseReleasedError)) {
      await this.release();
    }
  }

  /** How long a renewal lasts; 0 if the lease has no TTL. */
  get ttlMs(): number {
    return Number(this.#record.ttlMs);
  }

  /** Ends the lease for its holder; only the first call has an effect. For use by this package. */
  end(reason: LeaseLostError | LeaseReleasedError): void {
    if (!this.signal.aborted) {
      this.#timer.clear();
      this.#client.renewer.drop(this);
      this.#ending.abort(reason);
    }
  }

  /** Takes the record of an answer whose request was sent at a time. For use by this package. */
  extend(record: Allocation, sentAt: number, ledgerMs: bigint): void {
    if (this.signal.aborted) {
      return;
    }
    this.#record = record;
    this.#failure = undefined;
    if (record.expiresLedgerMs !== 0n) {
      this.#ends = sentAt + Number(record.expiresLedgerMs - ledgerMs);
      this.#safe = this.#ends - this.#marginOf(Number(record.ttlMs));
      this.#timer.setAt(this.#safe);
    }
    if (record.revokedBy) {
      this.#revoking.abort();
    }
  }

  #marginOf(ttlMs: number): number {
    return this.#marginMs ? Math.min(this.#marginMs, ttlMs / renewPart) : Math.min(ttlMs / marginPart, longestMarginMs);
  }

  /** Ends the lease at its safe moment, unless a renewal has just extended it. For use by this package. */
  expireIfDue(): void {
    if (this.signal.aborted || this.#safe === Infinity) {
      return;
    }
    if (now() < this.#safe) {
      this.#timer.setAt(this.#safe);
      return;
    }
    const by = revokerOf(this.#record);
    this.end(by ? new LeaseLostError(this.id, "preempted", by)
      : new LeaseLostError(this.id, "unrenewed", "", this.#failure));
  }

  /** Keeps the failure of an attempt to renew. For use by this package. */
  noteFailure(failure: unknown): void {
    this.#failure = failure;
  }
}
