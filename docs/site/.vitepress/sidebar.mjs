// The order of pages: the path of a new user, then what is looked up. A page of docs/ that is missing here makes the
// build fail.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const groups = [
  ["Begin", ["index", "share-accounts", "or-postgres"]],
  ["Choose the rules", ["policies", "configuration"]],
  ["Use it", ["requests", "leases", "ci", "clients", "dashboard"]],
  ["Guard it", ["access", "security"]],
  ["Run it", ["operations", "server", "fronting", "metrics", "log-messages", "webhooks"]],
  ["Connect it", ["with-kubernetes", "with-openstack", "from-boskos", "from-quota-manager", "from-yunikorn", "from-zuul"]],
  ["Look something up", ["features", "command-line", "api", "limits", "stability", "consistency", "performance", "glossary"]],
  ["Contribute", ["architecture", "api-style", "adr/README"]],
];

// sidebar lists all pages with their titles.
export function sidebar(pages) {
  const listed = new Set(groups.flatMap(([, names]) => names));
  for (const file of readdirSync(pages)) {
    const name = file.replace(/\.md$/, "");
    if (file.endsWith(".md") && !listed.has(name)) {
      throw new Error(`docs/${name}.md is not in the sidebar: add it to docs/site/.vitepress/sidebar.mjs`);
    }
  }
  const entry = (name) => name === "index" ? { text: "Install, and the first five minutes", link: "/" }
    : { text: titleOf(join(pages, name + ".md")), link: "/" + name.replace(/README$/, "") };
  return [
    ...groups.map(([text, names]) => ({ text, collapsed: false, items: names.map(entry) })),
    { text: "API reference", collapsed: true, items: referenceEntries(pages, entry) },
    { text: "Command reference", collapsed: true, items: commandEntries(pages, entry) },
  ];
}

function referenceEntries(pages, entry) {
  const names = readdirSync(join(pages, "reference")).map((file) => "reference/" + file.replace(/\.md$/, ""));
  const last = (name) => /README|shared/.test(name);
  return [
    { text: "Services", link: "/reference/" }, ...names.filter((name) => !last(name)).map(entry),
    entry("reference/shared"),
  ];
}

function commandEntries(pages, entry) {
  const names = readdirSync(join(pages, "commands")).filter((file) => file !== "README.md").sort();
  const pagesOf = names.map((file) => entry("commands/" + file.replace(/\.md$/, "")));
  return [{ text: "quorate", link: "/commands/" }, ...pagesOf];
}

// titleOf is the first heading of a page.
function titleOf(file) {
  const heading = readFileSync(file, "utf8").match(/^# (.*)$/m);
  if (heading === null) throw new Error(`${file} has no title`);
  return heading[1].replaceAll("`", "");
}
