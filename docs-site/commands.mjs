// Makes the reference of the command line from what the binary writes: a page for each command, and an index.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// writeCommandPages fills a folder with the help of all commands of the binary of the repository.
export function writeCommandPages(repository, folder) {
  const env = { ...process.env, HOME: "/nonexistent" };
  execFileSync(join(repository, ".bin/quorate"), ["docs", "markdown", folder], { env, stdio: "inherit" });
  const rows = [];
  for (const file of readdirSync(folder).sort()) {
    const page = join(folder, file);
    const text = commandPage(readFileSync(page, "utf8"));
    writeFileSync(page, text);
    const [title, short] = text.split("\n").filter((line) => line !== "");
    rows.push(`| [${title.replace(/^# /, "")}](${file}) | ${short} |`);
  }
  renameSync(join(folder, "quorate.md"), join(folder, "README.md"));
  const index = readFileSync(join(folder, "README.md"), "utf8").replace(/\n## See also[^]*$/, "\n");
  writeFileSync(join(folder, "README.md"), `${index}\n## All commands\n\n| command | for |\n|---|---|\n` +
    rows.map((row) => row.replace("(quorate.md)", "(README.md)")).join("\n") + "\n");
}

// commandPage lifts headings by a level, so that a page has a title, and leaves no tabs in lists.
export function commandPage(text) {
  const fenced = text.split(/^(```[^]*?^```$)/m);
  return fenced.map((part, i) => i % 2 === 1 ? part : part
    .replace(/^#(#+ )/gm, "$1").replace(/^## SEE ALSO$/m, "## See also").replaceAll("\t", "")
    .replaceAll("](quorate.md)", "](README.md)")).join("");
}
