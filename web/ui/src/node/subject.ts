import { SubjectKind, type Subject } from "#gen/access_pb";

/** The text of a subject, as manifests write it: "user corp/ann", or "everyone". */
export function subjectText(s: Pick<Subject, "kind" | "name">): string {
  const kind = SubjectKind[s.kind]?.toLowerCase() ?? "unknown";
  return s.name ? `${kind} ${s.name}` : kind;
}
