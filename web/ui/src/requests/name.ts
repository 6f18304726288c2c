// Names of allocations: an id is one only in its namespace.

/** What names an allocation: a reference, or the record. */
export type Named = { namespace: string; id: string };

/** The namespace of callers without a credential. */
export const defaultNamespace = "default";

/** The text that tells names apart, for keys of lists and in addresses: the id alone in the default namespace. */
export const nameKey = (of: Named) => (of.namespace === defaultNamespace ? of.id : `${of.namespace} ${of.id}`);
