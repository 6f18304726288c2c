// The TypeScript client of a Quorate cluster, for Node 20 or newer and browsers. "@quorate/client/v1" has the messages
// and enumerations of the API.

export type { AcquireOptions, Progress } from "./acquire.js";
export { bytesText, inBytes, inCount, inMilli, maxAmount, milliText } from "./amounts.js";
export { Client, type ClientOptions } from "./client.js";
export {
  decisionOf, DeniedError, LeaseLostError, LeaseReleasedError, mayBeDone, problemOf, retryAfterMs, TimedOutError,
  UnavailableError, type How,
} from "./errors.js";
export type { Lease } from "./lease.js";
export type { WatchOptions } from "./watch.js";
export * as v1 from "./v1.js";
