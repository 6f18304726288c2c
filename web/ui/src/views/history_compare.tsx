// Two revisions as text, line by line.
import { useMemo } from "preact/hooks";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { Answer, Empty } from "../components/states";
import { diffLines, hunks, type Line } from "../configuration/diff";

const signs = { same: " ", removed: "-", added: "+" };
const words = { same: "", removed: "removed", added: "added" };

/** Comparison shows what is different between two revisions; an empty "to" is the present one. */
export function Comparison({ from, to }: { from: bigint; to: string }) {
  const before = useManifest(from);
  const after = useManifest(/^[1-9][0-9]*$/.test(to) ? BigInt(to) : 0n);
  return (
    <Answer read={before}>
      {(b) => <Answer read={after}>{(a) => <Difference before={b} after={a} />}</Answer>}
    </Answer>
  );
}

function useManifest(revision: bigint) {
  return useRead(`manifest ${revision}`, { configuration: true }, (read, signal) =>
    api.configuration.getConfiguration({ revision, manifest: true, read }, { signal }),
  );
}

interface Text {
  revision: bigint;
  manifest: string;
}

function Difference({ before, after }: { before: Text; after: Text }) {
  const found = useMemo(
    () => hunks(diffLines(before.manifest, after.manifest)),
    [before.manifest, after.manifest],
  );
  return (
    <section>
      <h2>
        From revision {String(before.revision)} to {String(after.revision)}
      </h2>
      {found.length === 0 && <Empty>The texts are the same. Which nodes are cordoned is not a part of them.</Empty>}
      <div class="diff" role="region" aria-label="Difference" tabIndex={0} hidden={!found.length}>
        {found.map((hunk, i) => (
          <div key={i}>
            {hunk.skipped > 0 && <p class="quiet">{hunk.skipped} equal lines</p>}
            {hunk.lines.map((line, j) => (
              <DiffLine key={j} line={line} />
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}

function DiffLine({ line }: { line: Line }) {
  return (
    <code class={`diff-${line.kind}`}>
      <span aria-hidden="true">{signs[line.kind]} </span>
      {words[line.kind] && <span class="hidden">{words[line.kind]}: </span>}
      <bdi>{line.text}</bdi>
    </code>
  );
}
