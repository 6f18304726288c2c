import { Unit } from "#gen/tree_pb";
import { Mode } from "#gen/allocation_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { allocateCommand, explainCommand, readDraft, writeDraft } from "./draft";
import { checkDraft } from "./draft_request";
import { parseSpan } from "./span";

const unitOf = (_tree: string, resource: string) => (resource === "ram" ? Unit.BYTES : Unit.COUNT);
const read = (address: string) => readDraft(new URLSearchParams(address));

const full =
  "at=cern%3Aatlas%2Fphysics&amount=cores%3D4..16%2F4&amount=ram%3D16Gi&at=ci&item=account%40dirty%3D2&or=1" +
  "&at=cern&item=slot%3Aa%2Cb&user=ann&groups=dev%2Cops&application=run-1&priority=-5&wait=1h30m&ttl=30m";

test("a draft is read from its address and written back", () => {
  assert.equal(writeDraft(read(full)), full);
  assert.equal(writeDraft(read("")), "");
  assert.equal(writeDraft(read("at=cern")), "at=cern");
  assert.equal(writeDraft(read("amount=x%3D1&or=1&nonsense=2")), "");
});

test("a draft that is not begun has fields", () => {
  assert.deepEqual(read("").alternatives, [
    [{ tree: "", node: "", rows: [{ resource: "", value: "", items: false, state: "" }] }],
  ]);
});

test("the command of a draft can be pasted", () => {
  assert.equal(
    allocateCommand(read(full), "job-1"),
    "quorate allocate --id job-1 --wait 1h30m --ttl 30m --user ann --group dev --group ops --application run-1" +
      " --priority='-5' --at cern:atlas/physics --amount cores=4..16/4 --amount ram=16Gi --at ci --item account@dirty=2" +
      " --or --at cern --item slot:a,b",
  );
  assert.equal(
    explainCommand(read("at=cern&amount=cores%3D1&wait=1h&user=o'hara $(rm)")),
    "quorate explain --user 'o'\\''hara $(rm)' --at cern --amount cores=1",
  );
});

test("a draft becomes a request", () => {
  const { request, faults } = checkDraft(read(full), "x", unitOf);
  assert.deepEqual([...faults], []);
  assert.equal(request!.mode, Mode.WAIT);
  assert.equal(request!.waitMs, 5_400_000n);
  assert.equal(request!.priority, -5n);
  assert.deepEqual(request!.principal!.groups, ["dev", "ops"]);
  const [first, second] = request!.anyOf;
  assert.deepEqual(first!.claims[0]!.amounts, { ram: 16n << 30n });
  assert.equal(first!.claims[0]!.ranges[0]!.step, 4n);
  assert.equal(first!.claims[1]!.items[0]!.count, 2n);
  assert.deepEqual(second!.claims[0]!.items[0]!.names, ["a", "b"]);
});

test("without alternatives a request has claims, and without waiting it is denied at once", () => {
  const { request } = checkDraft(read("at=cern&amount=cores%3D2"), "x", unitOf);
  assert.equal(request!.anyOf.length, 0);
  assert.deepEqual(request!.claims[0]!.amounts, { cores: 2n });
  assert.equal(request!.mode, Mode.REJECT);
});

test("what is wrong is said at its field", () => {
  const faults = (address: string) => Object.fromEntries(checkDraft(read(address), "x", unitOf).faults);
  assert.deepEqual(faults(""), { "claim 0 0": "choose a tree" });
  assert.deepEqual(faults("at=cern"), { "claim 0 0": "ask for at least one resource" });
  assert.match(faults("at=cern&amount=cores%3D1.5")["row 0 0 0"]!, /not a whole number/);
  assert.match(faults("at=cern&amount=cores%3D1&amount=cores%3D2")["row 0 0 1"]!, /asked for twice/);
  assert.match(faults("at=cern&item=slot%3D0")["row 0 0 0"]!, /1 to 1000/);
  assert.match(faults("at=cern&item=slot%3Aa%2C%2Cb")["row 0 0 0"]!, /no name/);
  assert.match(faults("at=cern%3A%2Fatlas&amount=cores%3D1")["claim 0 0"]!, /slash/);
  assert.deepEqual(Object.keys(faults("at=cern&amount=cores%3D1&application=a&priority=x&wait=soon&ttl=200h")), [
    "wait",
    "ttl",
    "user",
    "priority",
  ]);
});

test("spans are read as the command line reads them", () => {
  assert.equal(parseSpan("1h30m"), 5_400_000n);
  assert.equal(parseSpan("1.5s"), 1500n);
  assert.equal(parseSpan("250ms"), 250n);
  for (const text of ["", "5", "1d", "-1s", "1h 30m", "0.0001s", "s"]) assert.equal(parseSpan(text), undefined, text);
});
