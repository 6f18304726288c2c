package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/internal/server/recovery"
)

// TestAccessIsRecovered: a shell on the machine of the leader leads back into a cluster whose last token is gone, once.
func TestAccessIsRecovered(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t)
	in := func(name string) string { return filepath.Join(tokens, name) }
	leader, other := 0, 0
	status, err := adminv1connect.NewClusterServiceClient(fresh, list[0].baseURL()).GetStatus(t.Context(),
		&adminv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		if f.id == status.GetLeaderId() {
			leader = i
		} else {
			other = i
		}
	}
	bootstrap := func(secret, out string) string {
		return "token create --secret-file " + in(secret) + " --out " + in(out)
	}
	prepare := func(i int, out string) string {
		return "access recover --data-dir " + list[i].dir + " --out " + in(out)
	}
	playSteps(t, list[other], []step{
		{"token rotate --life 2s --overlap 0s --out " + in("admin") + " --token-file " + in("admin"), 0, ""},
	})
	awaitCondition(t, "the last token does not end", func() bool {
		end := runCommand(t, "account", "list", "--token-file", in("admin"), "--server", list[other].baseURL())
		return end.code == 4 && strings.Contains(end.stderr, "expired")
	})
	playSteps(t, list[other], []step{
		{bootstrap("secret", "x"), 3, "the secret has been used"},
		{prepare(other, "of-another"), 0, ""},
		{bootstrap("of-another", "x"), 4, "the machine of the leader, " + list[leader].id},
		{prepare(leader, "of-leader"), 0, "while this server leads"},
		{bootstrap("of-another", "x"), 4, "the machine of the leader"},
	})
	offer := filepath.Join(list[leader].dir, recovery.OfferFile)
	kept, err := os.ReadFile(offer)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(offer, 0o644); err != nil {
		t.Fatal(err)
	}
	playSteps(t, list[other], []step{{bootstrap("of-leader", "x"), 3, "is not accepted"}})
	if err := os.Chmod(offer, 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, list[other], []step{
		{bootstrap("of-leader", "root"), 0, ""},
		{"account list --token-file " + in("root"), 0, "anna"},
		{"access status --token-file " + in("root"), 0, "guarded"},
	})
	for i, p := range processes {
		awaitCondition(t, list[i].id+" does not log the recovery", func() bool {
			said := p.stderr.String()
			return strings.Contains(said, "ACCESS WAS RECOVERED") && strings.Contains(said, "member="+list[leader].id)
		})
	}
	for _, f := range list {
		awaitCondition(t, f.id+" keeps a spent recovery", func() bool {
			_, err := os.Stat(filepath.Join(f.dir, recovery.OfferFile))
			return os.IsNotExist(err)
		})
	}
	if err := os.WriteFile(offer, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, list[other], []step{{bootstrap("of-leader", "x"), 3, "has been used"}})
	playSteps(t, list[other], []step{
		{prepare(leader, "again"), 0, ""},
		{bootstrap("again", "root2"), 0, ""},
		{"access whoami --token-file " + in("root2"), 0, "account/admin"},
	})
}
