package cli

import (
	"slices"
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestUsersWithout: users and accounts that lose a role at a place, whatever else their bindings say.
func TestUsersWithout(t *testing.T) {
	changes := []*quoratev1.Change{
		{Field: "access binding", Before: "root to account admin, account ops"},
		{Field: "access binding", After: "root to account ops"},
		{Field: "binding node-admin", Before: "user corp/peter, group corp/board", After: "user corp/peter until 2027"},
		{Field: "binding broker", Before: "user cert/zuul max-priority 10, hold-as any, ids zuul/"},
		{Field: "binding holder", Before: "account hans, everyone; account heidi", After: "account hans"},
		{Field: "limit cores", Before: "account nobody", After: "1"},
	}
	want := []string{"account/admin", "account/heidi", "cert/zuul"}
	if users := UsersWithout(changes); !slices.Equal(users, want) {
		t.Errorf("%v lose a binding, want %v", users, want)
	}
}
