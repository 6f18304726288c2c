import assert from "node:assert/strict";
import test from "node:test";
import { commandPage } from "./commands.mjs";
import { repositoryLink, slugOf } from "./.vitepress/markdown.mjs";

test("links that leave docs/ lead to the repository, others stay", () => {
  const main = "https://github.com/quorate/quorate";
  for (const [folder, link, want] of [
    ["docs", "leases.md#revocation", "leases.md#revocation"],
    ["docs/adr", "../limits.md", "../limits.md"],
    ["docs", "../README.md", `${main}/blob/main/README.md`],
    ["docs", "../CONTRIBUTING.md#names", `${main}/blob/main/CONTRIBUTING.md#names`],
    ["docs/adr", "../../proto/quorate/v1", `${main}/tree/main/proto/quorate/v1`],
    ["docs", "../docs-site/package.json", `${main}/blob/main/docs-site/package.json`],
  ]) {
    assert.equal(repositoryLink(folder, link), want);
  }
});

test("anchors are those of GitHub", () => {
  assert.equal(slugOf("`MODE_WAIT`: what waits, and how"), "mode_wait-what-waits-and-how");
});

test("a command's page has a title, and its examples stay", () => {
  assert.equal(commandPage("## quorate top\n\n```\n## no heading\n```\n\n### SEE ALSO\n\n* [quorate](quorate.md)\t - x\n"),
    "# quorate top\n\n```\n## no heading\n```\n\n## See also\n\n* [quorate](README.md) - x\n");
});
