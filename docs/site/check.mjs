// Checks the built site: nothing is loaded from other hosts, and every anchor that a page links to exists.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const dist = join(dirname(fileURLToPath(import.meta.url)), "dist");
const base = process.env.DOCS_BASE || "/";
const faults = [];
const files = readdirSync(dist, { recursive: true });
const pages = new Map(files.filter((file) => file.endsWith(".html"))
  .map((file) => [file, readFileSync(join(dist, file), "utf8")]));

// What a browser loads by itself; links that a reader follows may lead anywhere.
const loads = /<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc="([^"]*)"|<link\b[^>]*\shref="([^"]*)"/g;
const foreign = /^(?:[a-z]+:)?\/\//i;
for (const [file, text] of pages) {
  for (const [, source, link] of text.matchAll(loads)) {
    if (foreign.test(source ?? link)) faults.push(`${file} loads ${source ?? link}`);
  }
}
for (const file of files.filter((name) => name.endsWith(".css"))) {
  for (const [, target] of readFileSync(join(dist, file), "utf8").matchAll(/(?:url\(|@import )\s*["']?([^"')]*)/g)) {
    if (foreign.test(target)) faults.push(`${file} loads ${target}`);
  }
}

const anchors = new Map([...pages].map(([file, text]) =>
  [file, new Set([...text.matchAll(/\sid="([^"]*)"/g)].map((match) => match[1]))]));
let checked = 0;
for (const [file, text] of pages) {
  for (const [, link] of text.matchAll(/<a\b[^>]*\shref="([^"]*)"/g)) {
    if (/^[a-z]+:/.test(link) || !link.includes("#")) continue;
    const [path, anchor] = link.split("#").map(decodeURIComponent);
    const target = path === "" ? file : pageOf(file, path);
    checked++;
    if (!anchors.get(target)?.has(anchor)) faults.push(`${file} links to ${link}, which does not exist`);
  }
}

// pageOf is the file of the page that a link leads to.
function pageOf(file, path) {
  const target = path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(file), path);
  return target === "" || target.endsWith("/") ? target + "index.html" : target;
}

const index = files.filter((name) => /localSearchIndex/.test(name)).map((name) => readFileSync(join(dist, name), "utf8"));
if (index.length === 0) faults.push("the search has no index");
if (index.some((text) => text.includes("adr/0001"))) faults.push("the search finds decision records");

if (pages.size < 50 || checked < 500) faults.push(`only ${pages.size} pages and ${checked} anchors were found`);
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
console.log(`docs/site: ${pages.size} pages load nothing from other hosts; ${checked} anchors exist`);
