// Ctrl-C while requests wait.

/** What this file needs of the process object of Node; a browser has none. */
interface Process {
  pid: number;
  on(signal: string, listener: () => void): void;
  off(signal: string, listener: () => void): void;
  listenerCount(signal: string): number;
  kill(pid: number, signal: string): void;
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
const waiting = new Set<() => Promise<void>>();
const listeners = new Map<string, () => void>();

/**
 * Waits, and withdraws the request if a signal that ends the process comes meanwhile; then the signal takes its course.
 * A program that handles the signal itself decides by itself: it aborts the wait, or goes on.
 */
export async function withdrawOnSignal<T>(withdraw: () => Promise<void>, wait: () => Promise<T>): Promise<T> {
  const process = (globalThis as { process?: Process }).process;
  if (typeof process?.listenerCount !== "function") {
    return wait();
  }
  if (waiting.size === 0) {
    listen(process);
  }
  waiting.add(withdraw);
  try {
    return await wait();
  } finally {
    waiting.delete(withdraw);
    if (waiting.size === 0) {
      ignore(process);
    }
  }
}

function listen(process: Process): void {
  for (const signal of signals) {
    const listener = () => {
      if (process.listenerCount(signal) > 1) {
        return;
      }
      const all = [...waiting];
      waiting.clear();
      ignore(process); // another signal ends the process at once
      void Promise.allSettled(all.map((withdraw) => withdraw())).then(() => process.kill(process.pid, signal));
    };
    listeners.set(signal, listener);
    process.on(signal, listener);
  }
}

function ignore(process: Process): void {
  listeners.forEach((listener, signal) => process.off(signal, listener));
  listeners.clear();
}
