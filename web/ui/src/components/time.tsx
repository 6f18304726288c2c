// Instants and spans. Ledger time is counted on from what the server last said, so that a wrong clock of this machine
// does not shift it.
import { signal } from "@preact/signals";
import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import { position } from "../api/live";
import { localText, relative, span } from "../format";

/** The wall clock of this machine, once a second. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** ledgerNow is the present ledger time in milliseconds; absent before the server first told. */
export function ledgerNow(): number | undefined {
  const at = position.value;
  return at && Number(at.ledgerTimeMs) + Math.max(0, now.value - at.heard);
}

/** Instant shows how long ago a time was or how far it is, and the time itself on demand; exact shows the time itself. */
export function Instant({ at, exact }: { at?: Timestamp; exact?: boolean }) {
  if (!at) return null;
  const date = timestampDate(at);
  const [local, iso] = [localText(date), date.toISOString()];
  return (
    <time dateTime={iso} title={`${local}\n${iso}`}>
      {exact ? local : (relative(date.getTime(), now.value) ?? local.slice(0, 10))}
    </time>
  );
}

/** Ago shows how long ago an instant of ledger time was. */
export function Ago({ ledgerMs }: { ledgerMs: bigint }) {
  const at = ledgerNow();
  return at === undefined ? <span>…</span> : <span>{span(at - Number(ledgerMs))}</span>;
}

/** Remaining shows how long it is until an instant of ledger time. */
export function Remaining({ ledgerMs }: { ledgerMs: bigint }) {
  const at = ledgerNow();
  if (at === undefined) return <span>…</span>; // the server has not told the time yet
  const rest = Number(ledgerMs) - at;
  return <span>{rest > 0 ? span(rest) : "ends now"}</span>;
}
