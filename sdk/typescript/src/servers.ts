// The addresses of a cluster.

/** The known addresses and the one to which calls go now. */
export class Servers {
  readonly urls: string[];
  #current = 0;

  constructor(addresses: readonly string[]) {
    if (addresses.length === 0) {
      throw new TypeError('name at least one server, such as "http://127.0.0.1:7101"');
    }
    this.urls = addresses.map(parseServer);
  }

  /** The index of the server to call now. */
  get current(): number {
    return this.#current;
  }

  /** Selects the server after one that failed, unless another call has done so already. */
  advanceFrom(failed: number): void {
    if (this.#current === failed) {
      this.#current = (failed + 1) % this.urls.length;
    }
  }

  /** Throws for servers that a token must not be sent to. */
  checkTokens(isInsecure: boolean): void {
    for (const url of this.urls.map((text) => new URL(text))) {
      if (url.protocol === "http:" && !isInsecure && !isLoopback(url.hostname)) {
        throw new TypeError(`server ${url.host}: a token is not sent in plain text to another machine: write ` +
          `https://${url.host}, or allow it (insecureToken)`);
      }
    }
  }
}

function parseServer(address: string): string {
  const text = address.includes("://") ? address : "http://" + address;
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw new TypeError(wrongAddress(address), { cause });
  }
  if ((url.protocol !== "http:" && url.protocol !== "https:") || url.search || url.hash || !url.hostname) {
    throw new TypeError(wrongAddress(address));
  }
  if (url.username) {
    throw new TypeError(`server "${address}": the address has a user name, which calls do not send: write it without`);
  }
  return url.href.replace(/\/$/, "");
}

function wrongAddress(address: string): string {
  return `server "${address}" is not an address: write host:port, http://host:port or https://host:port`;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
