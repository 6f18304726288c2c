// Retries, failover, ids, tokens and joined calls.

import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import assert from "node:assert/strict";
import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Client, mayBeDone, problemOf, retryAfterMs } from "../src/index.js";
import { frame, grant, inTurn, problem, withServers, type Answer } from "./fake_server.js";

const claims = [{ tree: "t", amounts: { cores: 1n } }];

/** Grants what it is asked for, but does not answer the first time. */
function grantSecond(): (method: string, request: Record<string, unknown>) => Answer {
  let isFirst = true;
  return (_, request) => {
    const answer: Answer = isFirst ? [0, {}] : [200, grant(request["id"])];
    isFirst = false;
    return answer;
  };
}

test("a call fails over and keeps its id", () => withServers(
  [inTurn([503, problem("unavailable", "NO_LEADER")]), grantSecond()],
  {}, async (client, [first, second]) => {
    await client.allocations.allocate({ claims });
    const asked = [...first!.asked, ...second!.asked];
    assert.ok(asked.length >= 3, String(asked.length));
    assert.equal(new Set(asked.map((a) => a.request.id)).size, 1);
    assert.ok(asked[0]!.request.id.length > 20);
    await client.allocations.allocate({ claims });
    assert.equal(first!.asked.length + second!.asked.length, asked.length + 1, "the server that answers is kept");
  }));

test("a call fails over with the transport of Node, too", () => withServers(
  [inTurn([0, {}]), inTurn([200, {}])],
  { transport: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }) },
  async (client, [first, second]) => {
    await client.allocations.release({ id: "x" });
    await client.allocations.release({ id: "x" });
    assert.equal(second!.asked.length, 2);
    assert.ok(first!.asked.length <= 1);
  }));

test("changes have a request id", () => withServers(
  [inTurn([503, problem("unavailable", "NO_LEADER")], [200, {}])], {}, async (client, [server]) => {
    await client.trees.setLimits({ tree: "t" });
    const ids = server!.asked.map((a) => a.request.requestId as string);
    assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);
    assert.ok(ids[0]);
  }));

test("an overloaded server is given its time", () => withServers(
  [inTurn([503, problem("unavailable", "OVERLOADED", true, "0.400s")], [200, {}])], {}, async (client) => {
    const began = performance.now();
    await client.allocations.release({ id: "x" });
    assert.ok(performance.now() - began >= 399);
  }));

test("an answer is not retried", () => withServers(
  [inTurn([404, problem("not_found", "NOT_FOUND")])], {}, async (client, [server]) => {
    await assert.rejects(client.allocations.release({ id: "x" }), (e: ConnectError) =>
      e.code === Code.NotFound && problemOf(e)?.reason === "NOT_FOUND" && !mayBeDone(e));
    assert.equal(server!.asked.length, 1);
  }));

test("tokens are made once", async () => {
  for (const answer of [[0, {}], [503, problem("unavailable", "NO_LEADER", false)]] as Answer[]) {
    await withServers([inTurn(answer)], { patienceMs: 1000 }, async (client, [server]) => {
      await assert.rejects(client.access.createToken({}), (e) => mayBeDone(e));
      assert.equal(server!.asked.length, 1);
    });
  }
});

test("the patience ends", () => withServers(
  [inTurn([503, problem("unavailable", "NO_LEADER", false)])], {}, async (client) => {
    const began = performance.now();
    await assert.rejects(client.allocations.release({ id: "x" }, { timeoutMs: 500 }), (e: Error) =>
      /after [2-9] attempts/.test(e.message) && mayBeDone(e));
    assert.ok(performance.now() - began < 1000);
  }));

test("a refused connection was certainly not sent", async () => {
  const client = new Client(["http://127.0.0.1:9999"]);
  await assert.rejects(client.allocations.release({ id: "x" }, { timeoutMs: 200 }), (e: ConnectError) =>
    e.code === Code.Unavailable && !mayBeDone(e) && e.message.includes("ECONNREFUSED"));
});

test("a server that hangs does not use up the time", () => withServers(
  [() => new Promise(() => undefined), inTurn([200, {}])], { attemptTimeoutMs: 300 }, async (client, [, quick]) => {
    const began = performance.now();
    await client.allocations.release({ id: "x" });
    assert.ok(performance.now() - began < 1500);
    assert.equal(quick!.asked.length, 1);
  }));

test("a call can be cancelled", () => withServers([() => new Promise(() => undefined)], {}, async (client) => {
  await assert.rejects(client.allocations.release({ id: "x" }, { signal: AbortSignal.timeout(100) }),
    (e: ConnectError) => e.code === Code.Canceled || e.code === Code.DeadlineExceeded);
}));

test("a token is replaced", async () => {
  const tokens = ["old", "new"];
  await withServers([inTurn([401, { code: "unauthenticated", message: "no" }], [200, {}])],
    { token: () => tokens.shift()! }, async (client, [server]) => {
      await client.allocations.release({ id: "x" });
      assert.deepEqual(server!.asked.map((a) => a.authorization), ["Bearer old", "Bearer new"]);
    });
});

test("tokens do not leave in plain text", async () => {
  assert.throws(() => new Client(["10.0.0.1:7101"], { token: "t" }), /not sent in plain text to another machine/);
  assert.ok(new Client(["10.0.0.1:7101"], { token: "t", insecureToken: true }));
  await assert.rejects(new Client(["127.0.0.1:1"], { token: "t t" }).allocations.release({ id: "x" }), /must be alone/);
});

test("wrong addresses", () => {
  for (const address of ["", "ftp://a:1", "http://", "http://a:b", "http://a:1?x"]) {
    assert.throws(() => new Client([address]), /is not an address/);
  }
  assert.throws(() => new Client([]), /at least one server/);
});

test("hints are bounded", () => {
  const hint = (value: string) => retryAfterMs(new ConnectError("", Code.Unavailable, { "Retry-After": value }));
  assert.deepEqual([hint("2"), hint("600"), hint("soon")], [2000, 60_000, undefined]);
});

test("concurrent calls are joined and each has its outcome", async () => {
  let open = () => undefined as void;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const answer = async (method: string, request: any): Promise<Answer> => {
    await gate;
    if (method === "Allocate") {
      return [200, grant(request.id)];
    }
    return [200, {
      outcomes: request.requests.map((r: { id: string }) => r.id === "id-19"
        ? { failure: { code: "already_exists", message: "taken", problem: { reason: "ID_TAKEN" } } }
        : { granted: grant(r.id) }),
    }];
  };
  await withServers([answer], {}, async (client, [server]) => {
    const ids = Array.from({ length: 20 }, (_, i) => `id-${i}`);
    const calls = ids.map((id) => client.allocations.allocate({ id, claims })
      .then((r) => r.allocation!.id, (e: unknown) => problemOf(e)?.reason));
    setTimeout(() => open(), 100);
    assert.deepEqual(await Promise.all(calls), [...ids.slice(0, 19), "ID_TAKEN"]);
    assert.deepEqual(server!.asked.map((a) => a.method), ["Allocate", "Allocate", "BatchAllocate"]);
  });
});

test("a refused batch is made one by one", async () => {
  let open = () => undefined as void;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const answer = async (method: string, request: any): Promise<Answer> => {
    await gate;
    return method === "BatchRelease" ? [404, { code: "unimplemented" }] : [200, { allocation: { id: request.id } }];
  };
  await withServers([answer], {}, async (client) => {
    const calls = ["0", "1", "2", "3", "4"].map(
      async (id) => (await client.allocations.release({ id })).allocation?.id);
    setTimeout(() => open(), 50);
    assert.deepEqual(await Promise.all(calls), ["0", "1", "2", "3", "4"]);
  });
});

test("a watch survives a stream that is cut off, with the transport of Node over HTTP/2", async () => {
  let streams = 0;
  const server = createServer();
  const sessions: ServerHttp2Session[] = [];
  server.on("session", (session) => sessions.push(session));
  server.on("stream", (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/connect+json" });
    streams++;
    const change = { index: String(streams), change: { allocation: { id: `job-${streams}` } } };
    stream.end(frame(change)); // as a proxy that has waited long enough: without the message of the end
    stream.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const failures: unknown[] = [];
  const client = new Client([url], {
    transport: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
    notice: (e) => failures.push(e),
  });
  const ending = new AbortController();
  const seen: (string | undefined)[] = [];
  for await (const event of client.watch({}, { signal: ending.signal })) {
    seen.push(event.payload.case === "change" ? event.payload.value.allocation?.id : undefined);
    if (seen.length === 3) {
      ending.abort();
    }
  }
  sessions.forEach((session) => session.destroy());
  server.close();
  assert.deepEqual(seen, ["job-1", "job-2", "job-3"]);
  assert.ok(failures.length >= 2 && failures.every((e) => (e as ConnectError).code === Code.Unavailable));
});
