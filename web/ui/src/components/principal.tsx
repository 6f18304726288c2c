// For whom something is held or asked for.
import type { Allocation } from "#gen/allocation_pb";
import { NameList } from "./names";

/** PrincipalText goes on a sentence with the user, the groups, the application and the owner of a request. */
export function PrincipalText({ allocation: a }: { allocation: Allocation }) {
  const who = a.principal;
  return (
    <>
      {who?.user && <Named word="user" names={[who.user]} />}
      {who && who.groups.length > 0 && <Named word={who.groups.length > 1 ? "groups" : "group"} names={who.groups} />}
      {who?.application && <Named word="application" names={[who.application]} />}
      {a.owner && a.owner !== who?.user && <Named word="owner" names={[a.owner]} />}
    </>
  );
}

function Named({ word, names }: { word: string; names: string[] }) {
  return (
    <>
      , {word} <NameList names={names} />
    </>
  );
}
