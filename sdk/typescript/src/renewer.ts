// Renewals: the leases of a client that are due together are renewed in one call.

import { createContextValues } from "@connectrpc/connect";
import type { Client } from "./client.js";
import { now, spread, Timer } from "./clock.js";
import { LeaseLostError, retryAfterMs } from "./errors.js";
import type { RenewOutcome } from "./gen/quorate/v1/allocation_pb.js";
import { errorOfFailure } from "./join.js";
import { renewPart, revokerOf, type Lease } from "./lease.js";
import { RevocationWatcher } from "./revocations.js";
import { attemptKey, firstPauseMs, longestPauseMs, type Attempt } from "./transport.js";

/** The most renewals in one call. */
const mostRenewals = 1000;
/** Renewals are randomized by a tenth, and up to a sixth of the TTL earlier if a call is made for another lease. */
const renewSpread = 0.1;
const earlyPart = 6;
/**
 * An attempt to renew may take a sixth of the shortest TTL in it, so that several fit before the lease ends for its
 * holder, but at least shortestAttemptMs.
 */
const attemptPart = 6;
const shortestAttemptMs = 50;

/** Renews the leases of one client. */
export class Renewer {
  readonly #client: Client;
  readonly #due = new Map<Lease, number>();
  readonly #timer = new Timer(() => void this.#renewDue());
  readonly #revocations: RevocationWatcher;
  #isCalling = false;
  #failures = 0;

  constructor(client: Client) {
    this.#client = client;
    this.#revocations = new RevocationWatcher(client, (lease) => this.#setDue(lease, now()));
  }

  /** Starts renewing a lease, which has a TTL. */
  add(lease: Lease): void {
    this.#due.set(lease, now() + renewInMs(lease));
    this.#schedule();
    this.#revocations.add(lease);
  }

  /** Stops renewing a lease. */
  drop(lease: Lease): void {
    this.#due.delete(lease);
    this.#schedule();
    this.#revocations.drop(lease);
  }

  #setDue(lease: Lease, due: number): void {
    if (this.#due.has(lease)) {
      this.#due.set(lease, due);
      this.#schedule();
    }
  }

  /** Sets the timer for the first lease that is due; a call that is under way does it at its end. */
  #schedule(): void {
    this.#timer.clear();
    if (!this.#isCalling && this.#due.size > 0) {
      this.#timer.setAt(Math.min(...this.#due.values()));
    }
  }

  async #renewDue(): Promise<void> {
    const time = now();
    if (this.#isCalling || ![...this.#due.values()].some((due) => due <= time)) {
      this.#schedule();
      return;
    }
    const batch = [...this.#due.keys()].filter((lease) => this.#due.get(lease)! - lease.ttlMs / earlyPart <= time)
      .sort((a, b) => this.#due.get(a)! - this.#due.get(b)!).slice(0, mostRenewals);
    this.#isCalling = true;
    try {
      await this.#renewBatch(batch);
    } finally {
      this.#isCalling = false;
      this.#schedule();
    }
  }

  /** Makes one attempt to renew leases in one call. A batch that was not answered is retried at another server. */
  async #renewBatch(batch: Lease[]): Promise<void> {
    const limits = batch.map((lease) => Math.max(lease.ttlMs / attemptPart, shortestAttemptMs));
    const attempt: Attempt = { timeoutMs: Math.min(this.#client.attemptTimeoutMs, ...limits), sentAt: 0 };
    let outcomes: RenewOutcome[];
    try {
      const answer = await this.#client.allocations.batchRenew(
        { renewals: batch.map((lease) => ({ namespace: lease.namespace, id: lease.id, fence: lease.fence })) },
        { contextValues: createContextValues().set(attemptKey, attempt) });
      outcomes = answer.outcomes;
      if (outcomes.length !== batch.length) {
        throw new Error(`${batch.length} leases were renewed, and ${outcomes.length} outcomes came back`);
      }
      const isOther = ({ outcome }: RenewOutcome, i: number) =>
        outcome.case === "renewed" && outcome.value.allocation?.id !== batch[i]!.id;
      if (outcomes.some(isOther)) {
        throw new Error("the answer is about other leases: something else reads from this connection");
      }
    } catch (e) {
      this.#retryLater(batch, e);
      return;
    }
    this.#failures = 0;
    batch.forEach((lease, i) => {
      const againMs = applyOutcome(lease, outcomes[i]!, attempt.sentAt);
      if (againMs === undefined) {
        this.#due.delete(lease);
      } else {
        this.#setDue(lease, now() + againMs);
      }
    });
  }

  /** Makes leases due after a pause that grows with the failures in a row. */
  #retryLater(batch: Lease[], failure: unknown): void {
    const grown = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures, 10));
    const pause = Math.max(grown, retryAfterMs(failure) ?? 0);
    this.#failures++;
    for (const lease of batch) {
      lease.noteFailure(failure);
      const most = Math.max(lease.ttlMs / attemptPart, firstPauseMs);
      this.#setDue(lease, now() + spread(Math.min(pause, most), renewSpread));
    }
  }
}

/** After how long to renew a lease that was just renewed. */
function renewInMs(lease: Lease): number {
  return spread(lease.ttlMs / renewPart, renewSpread);
}

/**
 * Applies the outcome of a renewal. Returns after how long to renew again; undefined for never, because the lease is
 * over or revoked: renewals do not extend a revoked lease, which ends by its timer.
 */
function applyOutcome(lease: Lease, outcome: RenewOutcome, sentAt: number): number | undefined {
  const { case: kind, value } = outcome.outcome;
  if (kind === "renewed" && value.allocation) {
    lease.extend(value.allocation, sentAt, value.write!.ledgerTimeMs);
    return value.allocation.revokedBy ? undefined : renewInMs(lease);
  }
  if (kind !== "failure") {
    lease.noteFailure(new Error("an outcome without content came back"));
    return Math.max(lease.ttlMs / attemptPart, firstPauseMs);
  }
  const error = errorOfFailure(value);
  const isOver = value.code === "not_found" || value.code === "failed_precondition";
  if (!isOver && value.code !== "aborted") {
    lease.noteFailure(error);
    return Math.max(lease.ttlMs / attemptPart, firstPauseMs);
  }
  const by = revokerOf(lease.allocation);
  lease.end(new LeaseLostError(lease.id, isOver ? (by ? "preempted" : "ended") : "taken", by, error));
  return undefined;
}
