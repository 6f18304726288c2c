import assert from "node:assert/strict";
import { test } from "node:test";

// The addresses need a page.
Object.assign(globalThis, { location: { pathname: "/ui/", search: "" } });
const { findAbout, sortFound } = await import("./search");

const all = [{ name: "Limit requests" }, { name: "Plan", about: "request a change" }, { name: "Request capacity" }, { name: "Queue" }];
const names = (found: { name: string }[]) => found.map((f) => f.name);

test("what begins with a text comes before what contains it", () => {
  assert.deepEqual(names(sortFound("REQ", all)), ["Request capacity", "Limit requests"]);
});

test("what is for a text is found apart, unless the text is short", () => {
  assert.deepEqual(names(findAbout("REQ", all)), ["Plan"]);
  assert.deepEqual(findAbout("re", all), []);
});
