// Lays the pages of the site below .pages: those of docs/ as they are, the home page, the reference of the API, which
// is generated from the OpenAPI document, and that of the commands, which the binary writes.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { writeCommandPages } from "./commands.mjs";
import { referencePages } from "./reference.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const pages = join(here, ".pages");

rmSync(pages, { recursive: true, force: true });
mkdirSync(pages);
for (const name of readdirSync(join(here, ".."))) {
  if (name !== "site") cpSync(join(here, "..", name), join(pages, name), { recursive: true });
}
// Links of the home page lead to files of the repository there, and to pages of the same folder here.
const home = readFileSync(join(here, "index.md"), "utf8").replaceAll("](../", "](./");
writeFileSync(join(pages, "index.md"), home);
mkdirSync(join(pages, "reference"));
const text = readFileSync(join(here, "../../rpc/openapi/openapi.yaml"), "utf8");
const document = parse(text, { maxAliasCount: 0 });
for (const [name, page] of referencePages(document)) {
  writeFileSync(join(pages, "reference", name), page);
}
writeCommandPages(join(here, "../.."), join(pages, "commands"));
// The document itself is a file of the site, for viewers of OpenAPI.
mkdirSync(join(pages, "public"));
cpSync(join(here, "../../web/ui/icon.svg"), join(pages, "public/icon.svg"));
writeFileSync(join(pages, "public/openapi.yaml"), text);
