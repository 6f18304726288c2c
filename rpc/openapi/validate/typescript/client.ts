// Allocates and is denied by types that openapi-typescript generates from the OpenAPI document of a server: client URL.
// The test generates api.d.ts before it compiles this; nothing of it is checked in.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2]! });

function allocate(id: string, cores: number) {
  return client.POST("/quorate.v1.AllocationService/Allocate", {
    body: {
      id,
      mode: "MODE_REJECT",
      claims: [{ tree: "cern", node: "atlas/physics", amounts: { cores } }],
    },
  });
}

const granted = await allocate("typescript-1", 8);
if (!granted.data?.allocation) throw new Error(JSON.stringify(granted.error));
console.log("granted", granted.data.allocation.id, granted.data.allocation.state);

const denied = await allocate("typescript-2", 1_000);
const detail = denied.error?.details[0];
if (!denied.error || detail?.type !== "quorate.v1.Decision") throw new Error(JSON.stringify(denied));
console.log("denied", denied.error.code, "limit", detail.debug.violations[0]?.limit);
