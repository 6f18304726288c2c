// Mistakes in a text, each with its place.
import type { ManifestProblem } from "#gen/admin/configuration_pb";
import type { RefObject } from "preact";

interface ProblemsProps {
  title: string;
  list: ManifestProblem[];
  area: RefObject<HTMLTextAreaElement | null>;
}

/** Problems lists mistakes, and leads to each in the text. */
export function Problems({ title, list, area }: ProblemsProps) {
  if (!list.length) return null;
  return (
    <section class="note note-problem" role="alert">
      <h2>{title}</h2>
      <ul class="plain-list">
        {list.map((p) => (
          <li key={`${p.line} ${p.column} ${p.message}`}>
            {p.line > 0 && (
              <button type="button" class="link" onClick={() => select(area.current, p.line)}>
                line {p.line}, column {p.column}
              </button>
            )}{" "}
            <bdi>{p.message}</bdi>
          </li>
        ))}
      </ul>
    </section>
  );
}

function select(area: HTMLTextAreaElement | null, line: number): void {
  if (!area) return;
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 4);
}
