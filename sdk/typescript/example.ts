// Acquires a lease of a few cores, works while it is held, and says why if it is denied.
//
//	node sdk/typescript/.build/example.js http://127.0.0.1:7101 cern:atlas/operations/web cores=4
//
// The environment names certificates and a token, as for the command line of Quorate.

import { createConnectTransport } from "@connectrpc/connect-node";
import { Client, DeniedError, LeaseLostError } from "@quorate/client";
import { Mode } from "@quorate/client/v1";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The transport with the certificates that the environment names; fetch has none of its own. */
function withCertificates() {
  const read = (name: string) => (process.env[name] ? readFileSync(process.env[name]) : undefined);
  const nodeOptions = { ca: read("QUORATE_TLS_CA"), cert: read("QUORATE_TLS_CERT"), key: read("QUORATE_TLS_KEY") };
  return nodeOptions.ca && ((baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions }));
}

/** Returns the exit status: 0 after the work, 3 if the request was denied, 7 if the lease was lost. */
async function main(servers: string, place: string, amount: string): Promise<number> {
  const [tree = "", node = ""] = place.split(":");
  const [resource = "", number = ""] = amount.split("=");
  const client = new Client(servers.split(","), { token: process.env["QUORATE_TOKEN"], transport: withCertificates() });
  try {
    const lease = await client.acquire({
      claims: [{ tree, node, amounts: { [resource]: BigInt(number) } }],
      ttlMs: 30_000n, // renewed in the background; it ends by itself if this process dies
      mode: Mode.REJECT, // leave it out to wait in the queue
    });
    try {
      console.log(`granted ${lease.id} with fence ${lease.fence}`);
      for (let i = 0; i < 3; i++) {
        lease.check(); // throws a LeaseLostError from the safe moment on
        await sleep(100, undefined, { signal: lease.signal }); // the work
      }
    } finally {
      await lease.release();
    }
  } catch (e) {
    if (e instanceof DeniedError) {
      console.log("denied:", e.decision.explanation);
      for (const v of e.decision.violations) {
        console.log(`  ${v.tree}:${v.node} ${v.resource}: limit ${v.limit}, used ${v.used}, ` +
          `requested ${v.requested}, missing ${v.missing}`);
      }
      return 3;
    }
    if (e instanceof LeaseLostError) {
      console.log(e.message);
      return 7;
    }
    throw e;
  }
  console.log("released");
  return 0;
}

process.exitCode = await main(process.argv[2]!, process.argv[3]!, process.argv[4]!);
