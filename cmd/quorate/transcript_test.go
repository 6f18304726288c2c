package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; read the diff before you commit it")

// TestTranscripts runs the commands of each session and compares their output with a golden file in the form of a
// terminal session: 2> marks standard error, and a bracket at the end gives an exit code other than 0.
func TestTranscripts(t *testing.T) {
	t.Setenv("USER", "alice")
	t.Setenv("QUORATE_TOKEN", "")
	t.Setenv("QUORATE_TOKEN_FILE", "")
	sessions := map[string][]string{
		"trees": {
			"apply -f ../../examples/cern.yaml",
			"apply -f ../../examples/cern.yaml --dry-run --expected-revision 7 --reason test",
			"apply -f ../../examples/cern.yaml --expected-revision 6",
			"trees",
			"trees --stale",
			"tree export cern",
			"tree export tenants cern -o yaml",
			"limits set tenants:tenant-1 ram=16Gi cores=unset servers=unlimited",
			"limits set cern:atlas/physics cores=21",
			"tree delete tenants --dry-run",
			"tree delete cern",
			"policy list",
			"policy list -o json",
			"policy delete pool --dry-run",
			"policy delete lab",
			"history",
			"history -o json --limit 1",
		},
		"usage": {
			"usage cern",
			"usage cern --stale",
			"usage cern --subtree=false -o json",
			"usage cern --subtree=false -o yaml",
			"usage tenants:tenant-1",
			"usage nowhere",
		},
		"activity": {
			"activity cern:atlas/physics",
			"activity cern --last 10m",
			"activity cern --last 5m -o json",
			"activity cern --resource gpu --last 10m",
			"activity nowhere",
			"activity cern:atlas --resource gpu",
			"activity cern --last 25h",
		},
		"allocations": {
			"allocate --id job-1 --at cern:atlas/physics/simulation --amount cores=5",
			"allocate --id again --at cern:atlas/physics/simulation --amount cores=5",
			"allocate --id ci --at tenants:stranger --amount servers=2 --amount ram=1.5Gi --at " +
				"providers:cloud-a/main --amount servers=2 --label job=nightly --label url=http://x?a=b",
			"allocate --id what-if --dry-run --at cern:atlas/physics/simulation --amount cores=5",
			"allocate --id job-2 --at cern:atlas/physics/simulation --amount cores=5 -o json",
			"allocate --id big --at cern:atlas/operations/workflow --amount cores=21",
			"allocate --id big --at cern:atlas/operations/workflow --amount cores=21 -o json",
			"allocate --id taken --at cern:atlas --amount cores=1",
			"allocate --id ended --at cern:atlas --amount cores=1",
			"allocations",
			"allocations --limit 1 -o yaml",
			"allocation request-1",
			"allocation nobody",
			"release simulation-1",
			"release nobody",
		},
		"requests": {
			"allocate --id fit-1 --user ann --group physics --application fit --priority 10 --type 2 --unpreemptable " +
				"--at cern:atlas/physics --amount cores=1",
			"allocate --id soft-1 --priority 10 --at cern:atlas/physics --amount cores=15",
			"allocate --id soft-1 --priority 10 --at cern:atlas/physics --amount cores=15 --dry-run",
			"allocate --id room-1 --reserve 5m --at cern:atlas/physics --amount cores=1",
			"allocate --id import-1 --force --at cern:atlas/physics --amount cores=1",
			"allocation soft-0",
			"confirm room-1",
			"confirm held",
			"confirm lapsed",
			"cancel room-1",
			"cancel room-1 -o json",
			"explain --at cern:atlas/physics --amount cores=1",
			"explain --user ann --at cern:atlas/operations/workflow --amount cores=21",
			"explain --at cern:atlas/operations/workflow --amount cores=21 -o json",
			"explain big",
			"explain soft-0",
			"explain nobody",
			"events",
			"events --kind preempted",
			"events --id big --limit 1 -o yaml",
			"principals cern",
			"principals cern --groups",
			"principals cern ann -o json",
		},
		"leases": {
			"allocate --id lease-3 --ttl 30m --data secret=x --at ci:tenants/web --item aws-account --amount cores=4",
			"allocate --id lease-4 --at ci:tenants/web --item aws-account:account-1,account-2 --item cluster@dirty=2",
			"allocate --id soon --ttl 24h --wait 1h --at ci:tenants/web --item aws-account",
			"allocate --id soon --ttl 24h --wait 1h --at ci:tenants/web --item aws-account -o json",
			"allocate --id late --wait 1h --at ci:tenants/web --item aws-account",
			"allocate --id late-json --wait 1h --at ci:tenants/web --item aws-account -o json",
			"allocate --id queued --wait 1h --async --keep 10m --at ci:tenants/web --item aws-account " +
				"--item cluster@dirty",
			"allocate --id queued --wait 1h --async --at ci:tenants/web --item aws-account:account-1 -o yaml",
			"allocate --id big --wait 1h --at cern:atlas/operations/workflow --amount cores=21",
			"allocation lease-1",
			"allocation lease-2",
			"release lease-1 --state dirty",
			"release lease-1 --item ci:aws-account:account-1",
			"renew lease-1",
			"renew lease-1 --fence 7 --ttl 10m --data step=2",
			"renew lease-1 --fence 6",
			"renew nobody",
			"leases",
			"leases --stale -o yaml",
			"queue",
			"queue --tree cern",
			"queue --limit 1 -o json",
			"watch --limit 5",
			"watch --limit 1 --tree ci -o json",
			"watch --after 1",
			"items ci",
			"items ci:aws-account --limit 1 --stale",
			"items ci --state free --owner ann --name account-3 --data -o json",
			"items nowhere",
			"items --counts",
			"items ci:aws-account --counts -o json",
			"items set ci:aws-account:account-2 ci:aws-account:account-3 --state free",
			"items set ci:aws-account:account-1 --state free",
			"items reset ci:aws-account --state leased --idle 2h --to dirty",
			"lease run --id run-1 --resource aws-quota-slice=SLICES --count 2 --ttl 60s -- printenv LEASED_RESOURCE " +
				"SLICES QUORATE_FENCE QUORATE_LEASE",
			"lease run --id soon-run --at ci:tenants/web --resource aws-account --amount cores=1 --env " +
				"aws-account=ACCOUNT --wait 1h printenv ACCOUNT",
			"lease run --id late-run --resource cluster --wait 1h -- true",
			"lease run --resource aws-quota-slice -- false",
			"lease run --resource aws-quota-slice -- no-such-command",
			"lease run --resource aws-quota-slice -- ./testdata",
			"lease run --at cern:atlas/operations/workflow --amount cores=21 -- true",
			"lease run --at cern:atlas/operations/workflow --amount cores=21 -o json -- true",
		},
		"configuration": {
			"plan -f ../../examples/cern.yaml",
			"plan -f ../../examples/cern.yaml -f ../../examples/zuul.yaml --prune --reason test",
			"plan -f ../../examples/cern.yaml --expected-revision 6",
			"plan -f ../../examples/cern.yaml -o json",
			"apply -f ../../examples/cern.yaml -f ../../examples/zuul.yaml --prune",
			"export",
			"export -o json",
			"move cern:atlas/physics atlas/science --reason renamed",
			"move cern:atlas atlas/physics/atlas",
			"maintenance cern on",
			"maintenance cern off --dry-run",
			"rollback 6 --reason mistake",
			"rollback 1",
		},
		"bindings": {
			"plan -f ../../examples/access.yaml",
			"apply -f ../../examples/access.yaml --reason test",
			"apply -f testdata/access.yaml",
			"apply -f testdata/access.yaml -f ../../examples/access.yaml",
			"apply -f testdata/access-broken.yaml",
			"tree export laboratory",
			"history --limit 2",
		},
		"formats": {
			"convert --from zuul ../../examples/zuul/nodepool.yaml",
			"convert --from keystone ../../examples/keystone/limits.json",
			"convert --from quota-manager ../../examples/quota-manager/forest.json",
			"convert --from yunikorn ../../examples/yunikorn/queues.yaml",
			"convert --from boskos ../../compat/boskos/testdata/boskos.yaml -o json",
			"convert --from zuul testdata/nodepool-broken.yaml",
			"convert --from zuul nowhere.yaml",
			"plan --from zuul -f ../../examples/zuul/nodepool.yaml",
			"apply --from zuul -f testdata/nodepool-broken.yaml",
		},
		"membership": {
			"cluster members",
			"cluster members -o json",
			"cluster join 10.0.0.4:7301",
			"cluster join 10.0.0.1:7301",
			"cluster join --id n4",
			"cluster promote n4",
			"cluster promote n3",
			"cluster demote n4 -o yaml",
			"cluster demote n1",
			"cluster remove n9",
			"cluster remove n1",
			"cluster remove n1 --force",
			"cluster leave",
			"cluster transfer-leader n2",
			"cluster transfer-leader n1",
			"cluster transfer-leader",
			"cluster wait --voters 3",
			"cluster wait --healthy --timeout 3s",
		},
		"status": {
			"status",
			"status -o json",
			"help exit-codes",
		},
		"cluster": {
			"cluster level",
			"cluster level -o json",
			"cluster level --raise",
			"cluster digests",
			"cluster digests --now -o json",
		},
		"access": {
			"access whoami",
			"access whoami --token-file testdata/admin.token",
			"access whoami --token-file testdata/admin.token -o json",
			"access whoami --token-file testdata/ended.token",
			"access status",
			"access status --token-file testdata/admin.token",
			"access status --token-file testdata/admin.token -o json",
			"access can-i hold cern:atlas/physics",
			"access can-i limits.set cern:atlas/physics",
			"access can-i access.manage --token-file testdata/admin.token",
			"access can-i hold cern -o json",
			"access who-can limits.set cern:atlas/physics",
			"access who-can data.read cern",
			"access roles",
			"access account add sim-ci --group ci --description pipelines",
			"access account add sim-ci --group ci --description pipelines --token-file testdata/admin.token",
			"access account add admin --token-file testdata/admin.token",
			"access account list --token-file testdata/admin.token",
			"access account list -o json --stale --token-file testdata/admin.token",
			"access account update old-ci --enable --group night-shift --token-file testdata/admin.token",
			"access account update nobody --disable --token-file testdata/admin.token",
			"access account rm old-ci --token-file testdata/admin.token",
			"access token add sim-ci",
			"access token add sim-ci -o json",
			"access token add full",
			"access token rotate --overlap 1h",
			"access token revoke 0123456789abc --reason lost",
			"access token revoke 0000000000000",
			"access token list sim-ci",
			"access token list sim-ci -o yaml",
			"access refuse user github/456789 --until 2026-12-24T18:00:00Z --reason leaked",
			"access refuse jti 6f1c --issuer github --until 2026-12-24T18:00:00Z --reason leaked -o json",
			"access allow user github/456789",
			"access allow token 0000000000000",
			"access refused list",
			"access guard on",
			"access guard watch --token-file testdata/admin.token",
			"access guard on --token-file testdata/admin.token",
			"access guard on --force",
			"access bootstrap --secret-file testdata/bootstrap.secret",
			"access bootstrap --secret-file testdata/bootstrap.secret --account root -o json",
			"access bootstrap --secret-file testdata/admin.token",
		},
		"mistakes": {
			"nonsense",
			"usage",
			"usage a b",
			"usage :atlas",
			"usage cern:/atlas",
			"usage cern --nonsense",
			"usage cern -o xml",
			"status --timeout 0s",
			"cluster",
			"cluster join",
			"cluster join 10.0.0.4:7301 --id n4",
			"cluster promote",
			"cluster leave --server http://10.0.0.1:7101,http://10.0.0.2:7101",
			"status --timeout soon",
			"limits",
			"limits raise",
			"limits set cern",
			"limits set cern cores",
			"limits set cern cores=many",
			"limits set cern cores=1 cores=2",
			"limits set cern core=1",
			"limits set cerm cores=1",
			"apply",
			"apply -f nowhere.yaml",
			"apply -f testdata/broken.yaml",
			"apply -f testdata/unheard-of.yaml",
			"apply -f testdata/unheard-of.yaml --expected-revision seven",
			"allocate",
			"allocate --at cern",
			"allocate --amount cores=1 --at cern",
			"allocate --at cern --amount cores",
			"allocate --at cern --amount cores=1 --amount cores=2",
			"allocate --at cern --amount cores=-1",
			"allocate --at cern --amount cores=1.5",
			"allocate --at cern --amount cores=9223372036854775808",
			"allocate --at cern --amount core=1",
			"allocate --at cerm --amount cores=1",
			"allocate --at cern --amount cores=1 --label urgent",
			"allocate --at cern --amount cores=1 --label a=b --label a=c",
			"allocations --node atlas",
			"allocations --limit -1",
			"release",
			"allocate --at cern --amount cores=1 --group physics",
			"allocate --at cern --amount cores=1 --reserve 2h",
			"allocate --at cern --amount cores=1 --reserve 1m --force",
			"confirm",
			"explain",
			"explain big --at cern --amount cores=1",
			"events --kind denial",
			"events --limit -1",
			"plan",
			"plan -f ../../examples/cern.yaml --detailed-exitcode",
			"apply -f ../../examples/cern.yaml -f ../../examples/cern.yaml",
			"apply -f ../../examples/cern.yaml --from latin",
			"convert ../../examples/cern.yaml",
			"move cern atlas",
			"maintenance cern perhaps",
			"principals cern --users --groups",
			"rollback yesterday",
			"allocate --item aws-account --at ci",
			"allocate --at ci --item =2",
			"allocate --at ci --item aws-account=none",
			"allocate --at ci --item aws-account:a,",
			"allocate --at ci --item aws-account@",
			"allocate --at ci --amount aws-account=2",
			"allocate --at ci --item aws-account --ttl 200h",
			"allocate --at ci --item aws-account --wait 1us",
			"allocate --at ci --item aws-account --keep 1m",
			"allocate --at ci --item aws-account --wait 1h --keep 2h",
			"allocate --at ci --item aws-account --async",
			"allocate --at ci --item aws-account --wait 1h --force",
			"allocate --at ci --item aws-account --data secret",
			"renew",
			"renew lease-1 --ttl -1s",
			"release lease-1 --item account-1",
			"items",
			"items ci:",
			"items ci --counts --state free",
			"items set ci:aws-account --state free",
			"items set ci:aws-account:account-2",
			"items reset ci --state leased --to dirty",
			"items reset ci:aws-account --state leased",
			"queue --node tenants",
			"queue --resource aws-account",
			"watch --node tenants",
			"watch --after yesterday",
			"watch --after 4.x",
			"watch -o yaml",
			"lease",
			"lease run true",
			"lease run --resource aws-account",
			"lease run --resource aws-account --ttl 0s true",
			"lease run --resource aws-account --ttl 20ms true",
			"lease run --count 2 --resource aws-account true",
			"lease run --resource aws-account --count 0 true",
			"lease run --resource aws-account=1A true",
			"lease run --resource aws-account=A --env cluster=A true",
			"lease run --resource cores true",
			"lease run --at ci true",
			"access",
			"access can-i",
			"access can-i hold :atlas",
			"access account",
			"access account add",
			"access account update sim-ci",
			"access account update sim-ci --disable --enable",
			"access token add sim-ci --life long",
			"access token add sim-ci --life 9999999d",
			"access token add sim-ci --life 0d",
			"access token add sim-ci --out testdata/admin.token",
			"access token add sim-ci --out nowhere/token",
			"access token rotate --overlap -1h",
			"access token add sim-ci --server http://10.0.0.1:7101",
			"access refuse laptop x --until 1d --reason y",
			"access refuse user x --until 1d",
			"access refuse user x --reason y",
			"access refuse user x --until tomorrow --reason y",
			"access refuse user x --issuer github --until 1d --reason y",
			"access refuse jti x --until 1d --reason y",
			"access guard",
			"access guard off",
			"access bootstrap",
			"access bootstrap --secret-file nowhere",
			"access bootstrap --secret-file testdata/broken.yaml",
			"access bootstrap --secret-file testdata/bootstrap.secret --server http://10.0.0.1:7101",
			"status --token secret",
			"status --token-file nowhere",
			"status --token-file testdata/broken.yaml",
			"status --token-file testdata/admin.token --server http://10.0.0.1:7101",
		},
	}
	for name, lines := range sessions {
		t.Run(name, func(t *testing.T) {
			_, server := startFake(t)
			var transcript strings.Builder
			for _, line := range lines {
				recordCommand(&transcript, server, line)
			}
			compareGolden(t, filepath.Join("testdata", name+".golden"), transcript.String())
		})
	}
}

// elapsed matches the time that a command has waited, which these tests ignore.
var elapsed = regexp.MustCompile(`(waiting|not granted after) \d+s`)

// recordCommand runs a command line and appends its output.
func recordCommand(transcript *strings.Builder, server, line string) {
	fmt.Fprintf(transcript, "$ quorate %s\n", line)
	code, stdout, stderr := runQuorate(server, "", strings.Fields(line)...)
	for talk := range strings.Lines(elapsed.ReplaceAllString(stderr, "$1 0s")) {
		transcript.WriteString("2> " + talk)
	}
	transcript.WriteString(stdout)
	if code != cli.ExitOK {
		fmt.Fprintf(transcript, "[%d]\n", code)
	}
	transcript.WriteString("\n")
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: want (-), got (+):\n%s", file, diff)
	}
}
