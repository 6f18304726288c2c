// Names of allocations: an id is one only in its namespace.

/** What names an allocation: a reference, or the record. */
export type Named = { namespace: string; id: string };

/** The namespace of callers without a credential. */
export const defaultNamespace = "default";

/** The text that tells names apart, for keys of lists. */
export const nameKey = (of: Named) => `${of.namespace} ${of.id}`;
