// What calls, requests and leases fail with.
//
// Calls reject with the ConnectError of the server; examine it with the functions here, because texts may change.

import { Code, ConnectError } from "@connectrpc/connect";
import { DecisionSchema, ProblemSchema, type Decision, type Problem } from "./gen/quorate/v1/decision_pb.js";

/** The decision in the error of a denied request, with every limit in the way at every level. */
export function decisionOf(error: unknown): Decision | undefined {
  return error instanceof ConnectError ? error.findDetails(DecisionSchema)[0] : undefined;
}

/** The details of every other error of a server: a stable reason, the field, and every rule that would be broken. */
export function problemOf(error: unknown): Problem | undefined {
  return error instanceof ConnectError ? error.findDetails(ProblemSchema)[0] : undefined;
}

/** True if another attempt may succeed: there was no leader, no connection, or the server hung or shut down. */
export function isTransient(error: unknown): boolean {
  return error instanceof ConnectError &&
    (error.code === Code.Unavailable || error.code === Code.DeadlineExceeded || error.code === Code.Canceled);
}

/**
 * True if a write that failed may have been carried out nevertheless. To find out, repeat it with the same id, or read.
 */
export function mayBeDone(error: unknown): boolean {
  if (!(error instanceof ConnectError)) {
    return false;
  }
  if (error.cause instanceof GatewayError) {
    return error.cause.mayBeDone;
  }
  if (!isTransient(error) && error.code !== Code.Unknown && error.code !== Code.Internal) {
    return false;
  }
  const problem = problemOf(error);
  return problem ? !problem.notApplied : !isUnsent(error);
}

/** The cause of an error that a proxy or gateway in front of the servers answered by itself. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";

  constructor(
    /** The HTTP status. */
    readonly status: number,
  ) {
    super(`a gateway answered HTTP ${status}`);
  }

  /** A status below 500 says that the gateway refused the request before any server had all of it. */
  get mayBeDone(): boolean {
    return this.status >= 500 && this.status !== 501;
  }
}

/** The longest pause that a server may ask for. */
const longestHintMs = 60_000;

/**
 * How long an overloaded server, or a gateway in front of it, asked to wait before a retry, at most a minute. The client
 * itself waits at least so long wherever it retries.
 */
export function retryAfterMs(error: unknown): number | undefined {
  if (!(error instanceof ConnectError)) {
    return undefined;
  }
  const header = error.metadata.get("Retry-After") ?? "";
  let ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  for (const detail of error.details) {
    if ("type" in detail && detail.type === "google.rpc.RetryInfo") {
      const debug = detail.debug as { retryDelay?: string } | undefined;
      ms = Number(debug?.retryDelay?.replace(/s$/, "") ?? NaN) * 1000 || ms;
    }
  }
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), longestHintMs) : undefined;
}

// What the network of Node says if a call has certainly not left. Browsers do not say it.
const unsent = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH", "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT"]);

/** True if an error certainly preceded the call. */
export function isUnsent(error: unknown): boolean {
  return codesOf(error).some((code) => unsent.has(code)) || isTLSFailure(error);
}

/** True if TLS failed, on either side: another attempt at that server meets the same. Browsers do not say it. */
export function isTLSFailure(error: unknown): boolean {
  return codesOf(error).some((code) => /CERT|^ERR_TLS|^ERR_SSL|UNABLE_TO_VERIFY|EPROTO/.test(code));
}

function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  for (let e = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) {
    const code = (e as { code?: unknown }).code;
    if (typeof code === "string") {
      codes.push(code);
    }
  }
  return codes;
}

/** A request that can never fit, or that does not fit now and may not wait. Nothing has changed. */
export class DeniedError extends Error {
  override readonly name = "DeniedError";

  constructor(
    /** Names every limit in the way, at every level. */
    readonly decision: Decision,
    cause: ConnectError,
  ) {
    super(cause.rawMessage, { cause });
  }
}

/** A request that was not granted within its time to wait. It is not in the queue any more. */
export class TimedOutError extends Error {
  override readonly name = "TimedOutError";

  constructor(
    /** Names the limits that were in the way when the time was over. */
    readonly decision: Decision | undefined,
    readonly waitedMs: number,
    cause?: unknown,
  ) {
    super(`not granted after ${Math.round(waitedMs / 1000)} s: ${decision?.explanation ?? ""}`, { cause });
  }
}

/**
 * No server answered in time. The request may have been carried out; acquire has tried to withdraw it. The cause is the
 * failure of the attempts.
 */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";

  constructor(cause: unknown) {
    super(`no server answers: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** The ways in which a lease is lost. */
export type How =
  /** It could not be renewed in time. The servers may still hold it for a moment. */
  | "unrenewed"
  /** The servers have ended it: it expired or was released. */
  | "ended"
  /** It was revoked for another allocation. */
  | "preempted"
  /** Its id belongs to another grant by now. */
  | "taken";

const howTexts: Record<How, string> = {
  unrenewed: "it could not be renewed in time",
  ended: "it has ended",
  preempted: "it had to give way",
  taken: "its id stands for another grant",
};

/** A lease that has ended, or may have ended by now, although its holder did not release it. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";

  constructor(
    /** The id of the allocation. */
    readonly id: string,
    readonly how: How,
    /** The id of the allocation for which it was revoked; empty if it is not known. */
    readonly by = "",
    cause?: unknown,
  ) {
    const because = cause instanceof Error ? `: ${cause.message}` : "";
    super(`lease "${id}" is lost: ${howTexts[how]}${by && ` to ${by}`}${because}`, { cause });
  }
}

/** The reason of a lease's signal after its release. */
export class LeaseReleasedError extends Error {
  override readonly name = "LeaseReleasedError";

  constructor() {
    super("the lease was released");
  }
}
