package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/client"
)

// guardedTree is the tree of the examples, with the administrators and holders of its nodes.
const guardedTree = `access:
  bindings:
    - {role: root, subjects: ["account admin"]}
    - {role: cluster-operator, subjects: ["account ops"]}
trees:
  cern:
    policy: strict
    resources: {cores: {unit: count}}
    limits: {cores: 100}
    nodes:
      atlas:
        limits: {cores: 60}
        bindings: [{role: node-admin, subjects: ["account anna"]}]
        nodes:
          physics:
            limits: {cores: 40}
            bindings:
              - {role: node-admin, subjects: ["account peter"]}
              - {role: holder, subjects: ["account hans", "account heidi"]}
      cms:
        limits: {cores: 40}
        bindings: [{role: node-admin, subjects: ["account carl"]}]
`

// guardedCluster starts three servers, makes accounts with tokens, applies guardedTree and guards the cluster. It
// returns the servers, the leader first, and the folder with a token for each account. flags are further ones of a
// server.
func guardedCluster(
	t *testing.T, flags ...func(serverFlags) []string,
) (list []serverFlags, processes []*process, tokens string) {
	t.Helper()
	tokens = t.TempDir()
	secret := filepath.Join(tokens, "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list = threeServers(t)
	for i := range list {
		list[i].more = append(list[i].more, "--bootstrap-secret-file", secret)
		for _, more := range flags {
			list[i].more = append(list[i].more, more(list[i])...)
		}
		processes = append(processes, startProcess(t, list[i].commandLine()...))
	}
	for i := range list {
		awaitReady(t, processes[i], list[i])
	}
	root := " --token-file " + filepath.Join(tokens, "admin")
	steps := []step{
		{"token create --secret-file " + secret + " --out " + filepath.Join(tokens, "admin"), 0, ""},
		{"token create --secret-file " + secret + " --out " + filepath.Join(tokens, "again"), 3, "has been"},
		{"access whoami" + root, 0, "account/admin"},
		{"apply -f " + manifestFile(t, guardedTree) + root, 0, "binding node-admin: account anna"},
	}
	for _, name := range []string{"anna", "peter", "hans", "heidi", "carl", "ops"} {
		steps = append(steps, step{"account create " + name + root, 0, name},
			step{"token create " + name + " --out " + filepath.Join(tokens, name) + root, 0, "ends at"})
	}
	playSteps(t, list[1], append(steps,
		step{"access set watching" + root, 0, "watching"},
		step{"limit set cern:atlas cores=59 --reason nobody", 0, "applied"},
		step{"access set guarded" + root, 0, "guarded"},
		step{"limit set cern:atlas cores=60" + root, 0, "applied"}))
	for _, f := range list { // each server knows that the cluster is guarded
		playSteps(t, f, []step{{"access whoami" + root, 0, "guarded"}})
	}
	return list, processes, tokens
}

// TestAGuardedCluster: rights count the same on each server, for the leader and for those that forward calls to it.
func TestAGuardedCluster(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t, func(serverFlags) []string { return []string{"--front-ends", "yunikorn"} })
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	for i, f := range list {
		id := string(rune('a' + i))
		playSteps(t, f, []step{
			{as("anna", "limit set cern:atlas/physics cores=39"), 0, ""},
			{as("anna", "limit set cern:atlas/physics cores=40"), 0, ""},
			{as("anna", "limit set cern:atlas cores=61"), 4, "lacks the right limits.set at cern or above"},
			{as("peter", "limit set cern:atlas/physics cores=39"), 4, "limits.set"},
			{as("carl", "limit set cern:atlas/physics cores=39"), 1, "there is no node cern:atlas/physics"},
			{as("anna", "limit set cern:atlas/physics cores=30 --user account/eve"), 0, "users account/eve: cores 30"},
			{as("hans", "limit set cern:atlas/physics cores=31 --user account/eve"), 4, "policy.set"},
			{as("hans", "limit show cern:atlas/physics"), 0, "user account/eve  cores     30"},
			{as("hans", "limit show cern:atlas/physics"), 0, "without the use of users and groups"},
			{as("carl", "limit show cern:atlas/physics"), 1, "there is no node cern:atlas/physics"},
			{as("anna", "limit set cern:atlas --applications 3"), 4, "lacks the right limits.set at cern or above"},
			{as("anna", "limit set cern:atlas/physics cores=unset --user account/eve"), 0, "- cern:atlas/physics"},
			{"allocate --id y --at cern:cms --amount cores=1", 1, "there is no tree"},
			{as("hans", "allocate --id "+id+" --at cern:atlas/physics --amount cores=3"), 0, "granted"},
			{as("heidi", "allocation show "+id), 1, "no allocation"},
			{as("heidi", "allocation show --namespace account/hans "+id), 1, "no allocation"},
			{as("heidi", "release --namespace account/hans "+id), 1, "no allocation"},
			{
				as("heidi", "allocate --namespace account/hans --id "+id+" --at cern:atlas/physics --amount cores=3"), 4,
				"lacks the right hold.operate at cern:atlas/physics, which ids in another namespace",
			},
			{as("heidi", "allocate --id "+id+" --at cern:atlas/physics --amount cores=3"), 0, "in the namespace account/heidi"},
			{as("admin", "release --namespace account/heidi "+id), 0, "released"},
			{as("hans", "allocation show "+id), 0, "held"},
			{as("carl", "allocate --id x --at cern:atlas/physics --amount cores=3"), 1, "there is no"},
			{as("peter", "allocate --id x --at cern:atlas/physics --amount cores=3"), 4, "lacks the right hold"},
			{as("peter", "allocation list"), 0, id},
			{as("peter", "allocation list -o json --owner account/hans --at cern:atlas"), 0, `"owner": "account/hans"`},
			{as("hans", "usage cern"), 0, "physics  cores     40"},
			{as("carl", "usage cern:atlas"), 1, "there is no node cern:atlas"},
			{as("anna", "apply -f "+manifestFile(t, guardedTree)), 4, "--at cern:atlas"},
			{as("anna", "account create eve"), 4, "access.manage"},
			{as("ops", "access check cluster.operate"), 0, "yes"},
			{as("anna", "access check limits.set cern:atlas"), 0, "yes"},
			{as("carl", "access check limits.set cern:atlas"), 1, "no"},
			{as("ops", "level raise --dry-run"), 0, "possible  1"},
			{as("anna", "level raise --dry-run"), 4, "cluster.read"},
			{"access whoami", 0, "anonymous"},
			{as("hans", "release "+id), 0, "released"},
		})
		if status, _ := httpGet(t, f.baseURL()+"/metrics"); status != http.StatusUnauthorized {
			t.Errorf("%s shows its metrics with %d to everyone", f.id, status)
		}
		if status, _ := httpPost(t, f.baseURL()+"/ws/v1/validate-conf", "partitions: []"); status != http.StatusUnauthorized {
			t.Errorf("%s validates configurations of YuniKorn with %d for everyone", f.id, status)
		}
	}
	playSteps(t, list[2], []step{
		{
			as("hans", "token rotate --life 399d --out "+filepath.Join(tokens, "longer")), 2,
			"only callers with access.manage may make tokens that live longer",
		},
	})
	checkGuardedPlainPage(t, list[1], tokens)
}

// TestARevokedTokenWhileTheLeaderDies: no write with a token is applied behind its revocation, on any server and
// under any leader.
func TestARevokedTokenWhileTheLeaderDies(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	text, err := os.ReadFile(filepath.Join(tokens, "hans"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Split(strings.TrimSpace(string(text)), "_")[1]
	playSteps(t, list[0], []step{
		{as("hans", "allocate --id before --at cern:atlas/physics --amount cores=1"), 0, "granted"},
		{as("admin", "token delete "+id), 0, "revoked"},
	})
	for i, f := range list {
		playSteps(t, f, []step{
			{as("hans", "allocate --id after --at cern:atlas/physics --amount cores=1"), 4, "revoked"},
			{as("hans", "release before"), 4, "revoked"},
		})
		if i == 0 {
			processes[0].sendSignal(t, syscall.SIGKILL)
		}
	}
	playSteps(t, list[2], []step{
		{as("admin", "allocation show before --namespace account/hans"), 0, "held"},
		{as("admin", "allocation show after --namespace account/hans"), 1, "no allocation"},
		{as("heidi", "allocate --id later --at cern:atlas/physics --amount cores=1"), 0, "granted"},
	})
}

// TestClientsWithTokenFiles: the Go client sends the token of a file.
func TestClientsWithTokenFiles(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	c, err := client.New([]string{list[1].baseURL()}, client.WithTokenFile(filepath.Join(tokens, "hans")))
	if err != nil {
		t.Fatal(err)
	}
	request := oneClaim("by-client", 2)
	request.Claims[0].Tree, request.Claims[0].Node = "cern", "atlas/physics"
	answer, err := c.Allocations.Allocate(t.Context(), request)
	if err != nil || answer.GetAllocation().GetId() != "by-client" {
		t.Errorf("got %v, %v", answer, err)
	}
}
