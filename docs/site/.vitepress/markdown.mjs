// Rules for the Markdown of pages: links that leave docs/ lead to the repository.
import { posix } from "node:path";

const repository = "https://github.com/quorate/quorate";

// rewriteLinks is a rule of markdown-it: a link out of docs/, such as ../README.md, becomes one to the repository.
export function rewriteLinks(markdown) {
  markdown.core.ruler.push("repository-links", (state) => {
    const folder = posix.join("docs", posix.dirname(state.env.relativePath ?? ""));
    for (const block of state.tokens) {
      for (const token of block.children ?? []) {
        const link = token.type === "link_open" && token.attrGet("href");
        if (link && !/^([a-z]+:|#|\/)/.test(link)) token.attrSet("href", repositoryLink(folder, link));
      }
    }
  });
}

// repositoryLink returns the address of what a link of a page in a folder leads to.
export function repositoryLink(folder, link) {
  const [path, anchor] = link.split("#");
  const target = posix.join(folder, path);
  if (target === "docs" || target.startsWith("docs/")) return link;
  const kind = posix.extname(target) === "" ? "tree" : "blob";
  return `${repository}/${kind}/main/${target}${anchor ? "#" + anchor : ""}`;
}

// removeComments is a rule of markdown-it: without HTML, comments for those who edit a page would be shown.
export function removeComments(markdown) {
  markdown.core.ruler.after("normalize", "comments", (state) => {
    state.src = state.src.replace(/^<!--[^]*?-->\n/gm, "");
  });
}

// slugOf names the anchor of a heading as GitHub does.
export function slugOf(heading) {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");
}
