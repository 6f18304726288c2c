package access

import "testing"

// TestNamesWithOneHash checks that a name does not get the entry of another one that has its hash, as a caller that
// chooses its own groups might try.
func TestNamesWithOneHash(t *testing.T) {
	table := Compile([]Binding{{Role: "holder", To: []Subject{{Kind: Group, Name: "corp/sre"}}}}, Roles{}, NodeScope)
	c := Caller{Kind: External, User: "corp/ann"}
	sre := newHashedName(Group, "corp/sre")
	for _, forged := range []hashedName{
		{hash: sre.hash, kind: Group, text: "corp/forged"},
		{hash: sre.hash, kind: User, text: "corp/sre"},
	} {
		id := NewIdentity(&c, AllVerbs)
		id.names, id.filter = append(id.names, forged), id.filter|forged.filterBit()
		if got := table.verbs(id, 0); got != 0 {
			t.Errorf("%s %s has the verbs %s of group corp/sre", forged.kind, forged.text, got)
		}
	}
}
