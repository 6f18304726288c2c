// Leases on a time line. Times are ledger times in milliseconds.
import type { Allocation } from "#gen/allocation_pb";

/** Mark is what is to be said of a lease beside its times. */
export type Mark = "renewal late" | "revoked" | "declared end" | "";

/** startOf is when a lease was granted. */
export function startOf(a: Allocation): number {
  return Number(a.grantedLedgerMs);
}

/** endOf is when a lease ends unless it is renewed. */
export function endOf(a: Allocation): number {
  return Number(a.expiresLedgerMs);
}

/**
 * markOf says what is special about a lease. A keeper renews after a third of the TTL: one of which less than a third
 * is left has missed two renewals.
 */
export function markOf(a: Allocation, now: number): Mark {
  if (a.revokedBy) return "revoked";
  if (a.endsLedgerMs > 0n && a.endsLedgerMs === a.expiresLedgerMs) return "declared end";
  const rest = endOf(a) - now;
  return a.ttlMs > 0n && rest < Number(a.ttlMs) / 3 ? "renewal late" : "";
}

/** Span is the part of time that is drawn. */
export interface Span {
  from: number;
  to: number;
}

const spans = [60_000, 300_000, 900_000, 3_600_000, 4 * 3_600_000, 86_400_000, 7 * 86_400_000, 366 * 86_400_000];

/** spanAround is the smallest usual span that has the ends of all leases; a third of it is past. */
export function spanAround(leases: Allocation[], now: number): Span {
  const longest = leases.reduce((most, a) => Math.max(most, endOf(a) - now), 0);
  const ahead = spans.find((s) => s >= longest) ?? spans.at(-1)!;
  return { from: now - ahead / 2, to: now + ahead };
}

/** Place is where a bar begins and how long it is, in hundredths of the drawn part. */
export interface Place {
  left: number;
  width: number;
  /** It began before what is drawn. */
  cut: boolean;
}

/** placeOf is the bar of a lease. */
export function placeOf(a: Allocation, span: Span): Place {
  const whole = span.to - span.from;
  const percent = (at: number) => Math.min(100, Math.max(0, ((at - span.from) / whole) * 100));
  const left = percent(startOf(a));
  return { left, width: Math.max(0.5, percent(endOf(a)) - left), cut: startOf(a) < span.from };
}

/** bySoonestEnd orders leases by their ends. */
export function bySoonestEnd(leases: Allocation[]): Allocation[] {
  return [...leases].sort((a, b) => endOf(a) - endOf(b) || (a.id < b.id ? -1 : 1));
}
