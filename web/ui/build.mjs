// Builds the dashboard into web/dist: one script, one style sheet, the page, the icon, the font and the licences of what
// they contain. The names are fixed, so that a change shows as a change and not as new files. With --tests it
// bundles the unit tests into .build/tests instead; with --out FOLDER it builds elsewhere.
import { build } from "esbuild";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const argument = (name) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
};

const shared = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

if (process.argv.includes("--tests")) {
  rmSync(join(here, ".build/tests"), { recursive: true, force: true });
  const tests = readdirSync(join(here, "src"), { recursive: true }).filter((f) => f.endsWith(".test.ts"));
  await build({
    ...shared,
    entryPoints: tests.map((f) => join("src", f)),
    outdir: ".build/tests",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    packages: "bundle",
  });
} else {
  const out = argument("--out") ?? join(here, "../dist");
  mkdirSync(out, { recursive: true });
  for (const file of readdirSync(out)) rmSync(join(out, file), { recursive: true });
  const result = await build({
    ...shared,
    entryPoints: { app: "src/main.tsx" },
    outdir: out,
    minify: true,
    metafile: true,
    external: ["/ui/*"],
  });
  for (const file of ["index.html", "icon.svg"]) cpSync(join(here, file), join(out, file));
  cpSync(join(here, "src/fonts/inter.woff2"), join(out, "inter.woff2"));
  writeFileSync(join(out, "licenses.txt"), licences(result.metafile));
}

// licences are the texts of the packages of which the script contains files.
function licences(metafile) {
  const packages = new Set();
  for (const output of Object.values(metafile.outputs)) {
    for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
      const found = bytesInOutput && /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
      if (found) packages.add(found[1]);
    }
  }
  const font = readFileSync(join(here, "src/fonts/LICENSE"), "utf8").trim();
  return [...[...packages].sort().map(licence), `Inter 4 (OFL-1.1)\n\n${font}\n`].join("\n");
}

function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((f) => join(folder, f)).find(existsSync);
  const text = file ? readFileSync(file, "utf8").trim() : readFileSync(join(here, "../../LICENSE"), "utf8").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
}
