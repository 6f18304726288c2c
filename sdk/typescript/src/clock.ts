// Time on a monotonic clock, in milliseconds.

// A timer cannot be set for longer.
const longestTimer = 2 ** 31 - 1;
/** How often timers look whether the machine was suspended, which they do not notice. */
const suspensionCheckMs = 1000;
/** The unit of suspended time: its two clocks are not read at the same moment, and one of them has hundredths. */
const suspensionStepMs = 100;

interface Runtime {
  platform?: string;
  getBuiltinModule?(name: "node:os"): { uptime(): number };
}

/** For how many milliseconds the machine has been up; undefined where it is not known: outside of Node on Linux. */
function upTimeOf(runtime: Runtime | undefined): (() => number) | undefined {
  const os = runtime?.platform === "linux" ? runtime.getBuiltinModule?.("node:os") : undefined;
  return os && (() => os.uptime() * 1000);
}

const upMs = upTimeOf((globalThis as { process?: Runtime }).process);
const aheadMs = upMs ? upMs() - performance.now() : 0;
let suspendedMs = 0;

/** The machine as far as time is concerned; tests replace what it tells. */
export const machine = {
  /** For how long it was suspended since this module was loaded. performance.now leaves that time out. */
  suspendedMs(): number {
    if (upMs) {
      const since = upMs() - performance.now() - aheadMs;
      suspendedMs = Math.max(suspendedMs, Math.floor(since / suspensionStepMs) * suspensionStepMs);
    }
    return suspendedMs;
  },
};

/**
 * Milliseconds on a clock that no adjustment of the date moves. In Node on Linux it counts the time in which the machine
 * is suspended, as the servers do.
 */
export function now(): number {
  return performance.now() + machine.suspendedMs();
}

/** Resolves after so many milliseconds, or rejects with the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, Math.min(Math.max(ms, 0), longestTimer));
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A timer that can be set again. */
export class Timer {
  #handle: ReturnType<typeof setTimeout> | undefined;
  #time = 0;

  constructor(readonly fire: () => void) {}

  /**
   * Fires at a time of now(), at most suspensionCheckMs late after the machine was suspended, or earlier if that time is
   * far: fire must look at the clock.
   */
  setAt(time: number): void {
    this.clear();
    this.#time = time;
    this.#handle = setTimeout(() => {
      forget(this);
      this.fire();
    }, Math.min(Math.max(time - now(), 0), longestTimer));
    follow(this);
  }

  /** Sets it anew, after the clock has jumped. */
  resume(): void {
    this.setAt(this.#time);
  }

  /** Does not fire any more. */
  clear(): void {
    clearTimeout(this.#handle);
    forget(this);
  }
}

/** The timers that are set, which one interval makes follow the suspensions of the machine. */
const timers = new Set<Timer>();
let checks: ReturnType<typeof setInterval> | undefined;
let knownMs = 0;

function follow(timer: Timer): void {
  timers.add(timer);
  if (checks === undefined) {
    knownMs = machine.suspendedMs();
    checks = setInterval(checkSuspension, suspensionCheckMs);
  }
}

function forget(timer: Timer): void {
  timers.delete(timer);
  if (timers.size === 0) {
    clearInterval(checks);
    checks = undefined;
  }
}

function checkSuspension(): void {
  const ms = machine.suspendedMs();
  if (ms !== knownMs) {
    knownMs = ms;
    for (const timer of [...timers]) {
      timer.resume();
    }
  }
}

/** Randomizes a time by up to a part of it in either direction. */
export function spread(ms: number, part: number): number {
  return ms * (1 + part * (2 * Math.random() - 1));
}
