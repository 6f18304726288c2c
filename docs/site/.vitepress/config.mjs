// The site of the documentation: pages of docs/, with search, without anything that other hosts serve.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { removeComments, rewriteLinks, slugOf } from "./markdown.mjs";
import { sidebar } from "./sidebar.mjs";

const site = join(dirname(fileURLToPath(import.meta.url)), "..");
const { older } = JSON.parse(readFileSync(join(site, "versions.json"), "utf8"));
const version = process.env.VERSION || "devel";

// indexed is what the search reads of a page: nothing of decision records, which say why and not how.
function indexed(source, env, markdown) {
  const html = markdown.render(source, env);
  return env.relativePath.startsWith("adr/") ? "" : html;
}

export default defineConfig({
  title: "Quorate",
  description: "A replicated quota and lease service",
  lang: "en",
  base: process.env.DOCS_BASE || "/",
  srcDir: ".pages",
  outDir: "dist",
  rewrites: { "adr/README.md": "adr/index.md", "reference/README.md": "reference/index.md",
    "commands/README.md": "commands/index.md" },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: (process.env.DOCS_BASE || "/") + "icon.svg" }]],
  cleanUrls: false,
  metaChunk: true,
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  markdown: {
    // Pages are Markdown as GitHub shows it: no HTML, and addresses in texts stay texts.
    html: false,
    linkify: false,
    anchor: { slugify: slugOf },
    toc: { slugify: slugOf },
    config: (markdown) => markdown.use(removeComments).use(rewriteLinks),
  },
  themeConfig: {
    search: { provider: "local", options: { detailedView: true, _render: indexed } },
    outline: [2, 3],
    sidebar: sidebar(join(site, ".pages")),
    nav: [
      { text: "Tutorial", link: "/share-accounts" },
      { text: "Operations", link: "/operations" },
      { text: "API", link: "/reference/" },
      { text: version, items: [
        { text: "Changes", link: "https://github.com/quorate/quorate/blob/main/CHANGELOG.md" }, ...older,
      ] },
    ],
    socialLinks: [{ icon: "github", link: "https://github.com/quorate/quorate" }],
  },
});
