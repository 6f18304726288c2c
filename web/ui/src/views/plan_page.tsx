// What if, the configuration: what a manifest would change, before it is applied.
import { Consistency } from "#gen/common_pb";
import type { ManifestProblem } from "#gen/admin/configuration_pb";
import { SubtreeTextSchema, type ApplyTreesRequest, type ConfigurationResult } from "#gen/tree_pb";
import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { toFailure, type Failure } from "../api/failure";
import { position } from "../api/live";
import { filter } from "../components/filters";
import { TreePicker } from "../components/pickers";
import { Plan } from "../components/plan";
import { Refusal } from "../components/refusal";
import { setQuery } from "../router";
import { Problems } from "./plan_problems";

/** Planned is the answer to a text. */
interface Planned {
  problems: ManifestProblem[];
  warnings: ManifestProblem[];
  request?: ApplyTreesRequest;
  result?: ConfigurationResult;
}

/** PlanPage plans a manifest, and applies exactly what was planned. */
export function PlanPage() {
  const tree = filter("tree");
  return (
    <>
      <h1>Plan a configuration</h1>
      <p>
        Change the text and see what applying it would do: differences, who would be over, and what would become of
        requests. Nothing is changed by a plan.
      </p>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <TreePicker value={tree} change={(name) => setQuery({ tree: name })} all="The whole configuration" />
      </form>
      <Editor key={tree} tree={tree} />
    </>
  );
}

function Editor({ tree }: { tree: string }) {
  const [text, setText] = useState("");
  const [reason, setReason] = useState("");
  const [base, setBase] = useState<bigint>();
  const [planned, setPlanned] = useState<Planned>();
  const [failure, setFailure] = useState<Failure>();
  const [done, setDone] = useState<bigint>();
  const [busy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await work();
    } catch (thrown) {
      setFailure(toFailure(thrown));
    } finally {
      setBusy(false);
    }
  };
  const edit = (next: string) => {
    setText(next);
    setPlanned(undefined);
    setDone(undefined);
  };
  const load = () =>
    attempt(async () => {
      const shown = await readManifest(tree);
      edit(shown.manifest);
      setBase(shown.revision);
    });
  const plan = (onRevision: bigint | undefined) =>
    attempt(async () => {
      setBase(onRevision);
      setPlanned(undefined);
      setPlanned(await planText(text, tree, reason, onRevision));
    });
  const apply = (p: Planned) =>
    attempt(async () => {
      const { result } = await api.trees.applyTrees({
        ...p.request!,
        dryRun: false,
        reason,
        expectedRevision: base ?? p.result!.revision,
      });
      setPlanned(undefined);
      setBase(result?.revision);
      setDone(result?.revision);
    });
  useEffect(() => void load(), []);

  return (
    <>
      <form
        class="manifest"
        onSubmit={(e) => {
          e.preventDefault();
          void plan(base);
        }}
      >
        <label class="wide">
          Manifest{base !== undefined && `, loaded at revision ${base}`}
          <textarea
            ref={area}
            rows={20}
            wrap="off"
            spellcheck={false}
            value={text}
            onInput={(e) => edit(e.currentTarget.value)}
          />
        </label>
        <label class="wide">
          Reason, for the history
          <input value={reason} maxLength={1024} onInput={(e) => setReason(e.currentTarget.value)} />
        </label>
        <div class="actions">
          <button class="primary" disabled={busy || !text}>
            Plan
          </button>
          <button type="button" disabled={busy} onClick={() => void load()}>
            Load the present configuration
          </button>
        </div>
      </form>
      <div role="status">{done !== undefined && <p class="note">Applied: this is revision {String(done)}.</p>}</div>
      {failure && <Refusal failure={failure} />}
      {failure?.problem?.reason === "REVISION_MISMATCH" && (
        <p>
          The configuration was changed after you loaded it. Load it again and repeat your change, or{" "}
          <button onClick={() => void plan(undefined)}>plan this text on the present configuration</button>, which takes
          back what the others changed.
        </p>
      )}
      {planned && <Problems title="Mistakes in the text" list={planned.problems} area={area} />}
      {planned && <Problems title="Probably mistakes" list={planned.warnings} area={area} />}
      {planned?.result && (
        <section class="card">
          <h2>Plan</h2>
          <Plan result={planned.result} />
          {offersChanges && planned.result.changes.length > 0 && (
            <div class="actions">
              <button class="primary" disabled={busy || !reason.trim()} onClick={() => void apply(planned)}>
                Apply as planned
              </button>
              {!reason.trim() && <span class="quiet">Write a reason first.</span>}
            </div>
          )}
        </section>
      )}
    </>
  );
}

function readManifest(tree: string) {
  const read = { consistency: Consistency.STALE, minIndex: position.value?.index ?? 0n };
  return api.configuration.getConfiguration({ manifest: true, tree, read });
}

// planText has the server parse a text and try it. The text of one tree is limited to that tree, so that changes of
// others do not make its plan stale.
async function planText(text: string, tree: string, reason: string, expectedRevision?: bigint): Promise<Planned> {
  const { request, problems, warnings } = await api.configuration.parseManifest({ text });
  if (!request) return { problems, warnings };
  const single = request.trees.length === 1 && request.trees[0]!.name === tree;
  if (single && !request.policies.length && !request.access) {
    request.subtree = create(SubtreeTextSchema, { tree, text: request.trees[0]! });
    request.trees = [];
  }
  const { result } = await api.trees.applyTrees({ ...request, dryRun: true, reason, expectedRevision });
  return { problems, warnings, request, result };
}
