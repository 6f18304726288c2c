import assert from "node:assert/strict";
import test from "node:test";
import { commandPages, commandSection } from "./commands.mjs";
import { repositoryLink, slugOf } from "./.vitepress/markdown.mjs";

test("links that leave docs/ lead to the repository, others stay", () => {
  const main = "https://github.com/quorate/quorate";
  for (const [folder, link, want] of [
    ["docs", "leases.md#revocation", "leases.md#revocation"],
    ["docs/adr", "../limits.md", "../limits.md"],
    ["docs", "../README.md", `${main}/blob/main/README.md`],
    ["docs", "../CONTRIBUTING.md#names", `${main}/blob/main/CONTRIBUTING.md#names`],
    ["docs/adr", "../../proto/quorate/v1", `${main}/tree/main/proto/quorate/v1`],
    ["docs/adr", "../../tools/go.mod", `${main}/blob/main/tools/go.mod`],
  ]) {
    assert.equal(repositoryLink(folder, link), want);
  }
});

test("anchors are those of GitHub", () => {
  assert.equal(slugOf("`MODE_WAIT`: what waits, and how"), "mode_wait-what-waits-and-how");
});

const topHelp = "## quorate top\n\nFollow\n\n### Synopsis\n\nFollow it.\n\n### Examples\n\n```\n## no heading\n```\n\n" +
  "### Options inherited from parent commands\n\n```\n--server\n```\n\n### SEE ALSO\n\n* [quorate](quorate.md)\t - x\n";

test("a command is a section, and its examples stay", () => {
  assert.equal(commandSection(topHelp),
    "## quorate top\n\nFollow\n\nFollow it.\n\n**Examples**\n\n```\n## no heading\n```\n\n");
});

test("commands have a page by group, which the index links", () => {
  const help = "Quorate\n\nUsage:\n  quorate [command]\n\nLimits and usage:\n  top   Follow\n\nFlags:\n  -h, --help\n";
  const pages = new Map(commandPages(help, new Map([["quorate", "## quorate\n\nQuota\n"], ["quorate top", topHelp]])));
  assert.deepEqual([...pages.keys()], ["README.md", "limits-and-usage.md"]);
  assert.match(pages.get("README.md"), /^# quorate\n[^]*\| \[quorate top\]\(limits-and-usage\.md#quorate-top\) \| Follow \|/);
  assert.match(pages.get("limits-and-usage.md"), /^# Limits and usage\n\n## quorate top\n/);
});
