// Limits as people write them: an amount, advisory:AMOUNT, unlimited or unset.
import { create } from "@bufbuild/protobuf";
import { LimitSchema, type Limit } from "#gen/common_pb";
import type { Unit } from "#gen/tree_pb";
import { exact } from "../format";
import { parseQuantity } from "../requests/quantity";

const advisory = "advisory:";

/** parseLimit reads a limit. It throws an AmountError. */
export function parseLimit(text: string, unit: Unit): Limit {
  const trimmed = text.trim();
  if (trimmed === "unlimited") return create(LimitSchema, { value: { case: "unlimited", value: true } });
  if (trimmed === "unset") return create(LimitSchema, { value: { case: "unset", value: true } });
  if (trimmed.startsWith(advisory)) {
    return create(LimitSchema, { value: { case: "advisory", value: parseQuantity(trimmed.slice(advisory.length), unit) } });
  }
  return create(LimitSchema, { value: { case: "amount", value: parseQuantity(trimmed, unit) } });
}

/** boundOf is the amount of a limit of a user, a group or a number of applications; undefined if there is none. */
export function boundOf(limit: Limit | undefined): bigint | undefined {
  return limit?.value.case === "amount" ? limit.value.value : undefined;
}

/** writeLimit writes a limit so that parseLimit reads the same. */
export function writeLimit(limit: Limit | undefined, unit: Unit): string {
  switch (limit?.value.case) {
    case "amount":
      return exact(limit.value.value, unit);
    case "advisory":
      return advisory + exact(limit.value.value, unit);
    case "unlimited":
      return "unlimited";
    default:
      return "unset";
  }
}
