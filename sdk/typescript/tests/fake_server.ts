// A server whose answers a test writes.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Client, type ClientOptions } from "../src/index.js";

type Json = Record<string, unknown>;

/** A status with a JSON object, or with a list of the messages of a stream; status 0 breaks the connection. */
export type Answer = [status: number, content: Json | Json[]];

type Answerer = (method: string, request: Json) => Answer | Promise<Answer>;

/** Listens on a port of this machine, and notes what it is asked. */
export class FakeServer {
  readonly asked: { method: string; request: any; authorization: string | undefined }[] = [];
  url = "";
  readonly #server: Server;

  constructor(answer: Answerer) {
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => void (async () => {
        const isStream = request.headers["content-type"]!.startsWith("application/connect+");
        const body = Buffer.concat(parts);
        const content = JSON.parse(body.subarray(isStream ? 5 : 0).toString()) as Json;
        const method = request.url!.split("/")[2]!;
        this.asked.push({ method, request: content, authorization: request.headers.authorization });
        const timeout = request.headers["connect-timeout-ms"];
        const isRefused = timeout !== undefined && !/^\d{1,10}$/.test(String(timeout)); // as servers do
        const [status, said]: Answer = isRefused ? [400, { code: "invalid_argument" }] : await answer(method, content);
        if (status === 0) {
          request.socket.destroy();
          return;
        }
        response.writeHead(status, { "Content-Type": status === 200 && isStream ? "application/connect+json"
          : "application/json" });
        response.end(isStream && status === 200 ? Buffer.concat((said as Json[]).map(frame)) : JSON.stringify(said));
      })());
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** A message of a stream in its envelope; one with the key end is the last. */
export function frame(message: Json): Buffer {
  const data = Buffer.from(JSON.stringify(message["end"] ?? message));
  const head = Buffer.alloc(5);
  head[0] = "end" in message ? 2 : 0;
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/** The body of an error. The value of the detail is the message reason = 1, not_applied = 4 in the binary encoding. */
export function problem(code: string, reason: string, notApplied = true, retryDelay = ""): Json {
  const value = Buffer.from([0x0a, reason.length, ...Buffer.from(reason), 0x20, notApplied ? 1 : 0]);
  const details: Json[] = [{ type: "quorate.v1.Problem", value: value.toString("base64").replace(/=+$/, "") }];
  if (retryDelay) {
    details.push({ type: "google.rpc.RetryInfo", value: "", debug: { retryDelay } });
  }
  return { code, message: reason, details };
}

/** The body of a grant at ledger time 1,000. */
export function grant(id: unknown, ttlMs = 0, more: Json = {}): Json {
  const lease = ttlMs ? { ttlMs: String(ttlMs), expiresLedgerMs: String(1000 + ttlMs) } : {};
  const allocation = { id, state: "ALLOCATION_STATE_HELD", fence: "7", ...lease, ...more };
  return { allocation, decision: { outcome: "OUTCOME_GRANTED" }, write: { ledgerTimeMs: "1000" } };
}

/** The answer to a call of BatchRenew that renews everything. */
export function renewAll(request: any, ttlMs: number): Answer {
  return [200, { outcomes: request.renewals.map((r: Json) => ({ renewed: renewed(r["id"], ttlMs) })) }];
}

export function renewed(id: unknown, ttlMs: number, more: Json = {}): Json {
  const { allocation, write } = grant(id, ttlMs, more);
  return { allocation, write };
}

/** Runs a test with servers that answer, and a client of them. */
export async function withServers(
  answerers: Answerer[], options: ClientOptions, test: (client: Client, servers: FakeServer[]) => Promise<void>,
): Promise<void> {
  const servers = await Promise.all(answerers.map((answer) => new FakeServer(answer).start()));
  try {
    await test(new Client(servers.map((s) => s.url), options), servers);
  } finally {
    servers.forEach((s) => s.close());
  }
}

/** Gives the answers in turn, and the last one for ever. */
export function inTurn(...answers: Answer[]): Answerer {
  return () => (answers.length > 1 ? answers.shift()! : answers[0]!);
}
