// Time on a monotonic clock, in milliseconds.

// A timer cannot be set for longer.
const longestTimer = 2 ** 31 - 1;

/** Milliseconds on a clock that no adjustment of the date moves. */
export function now(): number {
  return performance.now();
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

  constructor(readonly fire: () => void) {}

  /** Fires at a time of now(), or earlier if that is far: fire must look at the clock. */
  setAt(time: number): void {
    this.clear();
    this.#handle = setTimeout(this.fire, Math.min(Math.max(time - now(), 0), longestTimer));
  }

  /** Does not fire any more. */
  clear(): void {
    clearTimeout(this.#handle);
  }
}

/** Randomizes a time by up to a part of it in either direction. */
export function spread(ms: number, part: number): number {
  return ms * (1 + part * (2 * Math.random() - 1));
}
