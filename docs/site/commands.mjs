// Makes the reference of the command line from what the binary writes: a page for each group of commands, and an index.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A command with at least so many commands of its own has a page of its own.
const large = 10;

// writeCommandPages fills a folder with the help of all commands of the binary of the repository.
export function writeCommandPages(repository, folder) {
  const env = { ...process.env, HOME: "/nonexistent" };
  const binary = join(repository, ".bin/quorate");
  execFileSync(binary, ["docs", "create", folder, "--format", "markdown"], { env, stdio: "inherit" });
  const texts = new Map();
  for (const file of readdirSync(folder)) {
    texts.set(file.replace(/\.md$/, "").replaceAll("_", " "), readFileSync(join(folder, file), "utf8"));
    rmSync(join(folder, file));
  }
  const help = execFileSync(binary, ["help"], { env, encoding: "utf8" });
  for (const [name, text] of commandPages(help, texts)) writeFileSync(join(folder, name), text);
}

// commandPages returns pairs of the name of a file and its text: the index, and a page for each group of commands.
export function commandPages(help, texts) {
  const pages = [];
  const rows = [];
  for (const [title, commands] of groupsOf(help, [...texts.keys()])) {
    const file = title.toLowerCase().replace(/[^a-z]+/g, "-") + ".md";
    pages.push([file, `# ${title}\n\n` + commands.map((name) => commandSection(texts.get(name))).join("\n")]);
    rows.push(...commands.map((name) =>
      `| [${name}](${file}#${name.replaceAll(" ", "-")}) | ${shortOf(texts.get(name))} |`));
  }
  const root = commandSection(texts.get("quorate"), true).replace(/^## /, "# ");
  return [["README.md", `${root}\n## All commands\n\n| command | for |\n|---|---|\n${rows.join("\n")}\n`], ...pages];
}

// groupsOf returns the groups of the help with the names of all their commands, those of large commands apart.
function groupsOf(help, names) {
  const groups = [];
  for (const [, title, list] of help.matchAll(/^([A-Z][A-Za-z, ]*):\n((?: {2}[a-z].*\n)+)/gm)) {
    const tops = [...list.matchAll(/^ {2}([a-z-]+)/gm)].map((match) => "quorate " + match[1]);
    const trees = tops.map((top) => names.filter((name) => name === top || name.startsWith(top + " ")).sort());
    const small = trees.filter((tree) => tree.length > 0 && (tree.length < large || trees.length < 4)).flat();
    if (small.length > 0) groups.push([title === "Additional Commands" ? "Other commands" : title, small]);
    for (const tree of trees) {
      if (tree.length >= large && trees.length >= 4) groups.push([tree[0].replace("quorate ", "Command "), tree]);
    }
  }
  return groups;
}

const shortOf = (text) => text.split("\n").filter((line) => line !== "")[1];

// commandSection is the help of a command below a heading of the second level, without the flags that all commands
// have, unless it is the help of the program itself.
export function commandSection(text, whole = false) {
  const parts = text.split(/^### /m);
  const kept = parts.filter((part, i) => i === 0 || !/^SEE ALSO/.test(part) && (whole || !/^Options inherited/.test(part)));
  return kept.map((part, i) => i === 0 ? part
    : part.replace(/^Synopsis\n\n/, "").replace(/^(Examples|Options)\n/, "**$1**\n")).join("");
}
