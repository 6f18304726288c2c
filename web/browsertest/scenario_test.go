package browsertest

import (
	"path/filepath"
	"strings"
	"testing"
)

// hostile is text that callers may choose, and that would run a script, end an attribute or turn the text around it if
// a page took it for more than text.
const (
	hostile   = `<img src=x onerror=alert(1)> "quoted" 'text' & &lt; ` + "\u202etxen \u0645\u0631\u062d\u0628\u0627"
	hostileID = `<img/src=x/onerror=alert(1)>"'&`
)

// never ends in the time of any test.
const never = "100h"

// scenario is what the cluster holds: one command a line, its words separated by spaces. Words that begin with $ stand
// for the texts above.
const scenario = `
apply -f examples/cern.yaml --actor ann --reason first
apply -f examples/ci.yaml --actor ben --reason tenants
apply -f examples/borrowing.yaml --actor ann --reason $hostile
apply -f examples/advisory.yaml --actor ann
apply -f examples/principals.yaml --actor ann
apply -f $hostileManifest --actor ann --reason $hostile

allocate --id sim-1 --user hans --group physics --at cern:atlas/physics/simulation --amount cores=6
allocate --id web-1 --user heidi --at cern:atlas/operations/web --amount cores=28
allocate --id flow-1 --user heidi --at cern:atlas/operations/workflow --amount cores=50
allocate --id sim-2 --user peter --at cern:atlas/physics/simulation --amount cores=8 --wait $never --async --keep 1h
allocate --id web-2 --user hans --priority 5 --at cern:atlas/operations/web --amount cores=4 --wait $never --async --keep 1h
allocate --id web-3 --user hans --at cern:atlas/operations/web --amount cores=1 --wait $never --async --keep 1h

allocate --id job-1 --at ContextTree:Org-A/Context-2 --amount cpu=3 --at ServiceTree:Srvc-Y --amount cpu=1 --amount disk=1
allocate --id job-2 --priority 3 --at ContextTree:Org-B/Context-4 --amount cpu=2 --at ServiceTree:Srvc-X --amount cpu=2
allocate --id watched-1 --at labs:atlas --amount cores=7
allocate --id watched-2 --at labs:cms --amount cores=6
allocate --id run-1.build --user sue --group dev --application run-1 --at queues:ci/build --amount vcore=4 --amount memory=8G
allocate --id run-2.test --user tim --group dev --application run-2 --at queues:ci/test --amount vcore=1500m --amount memory=123456789
allocate --id night-1 --user nightly-bot --application night --at queues:batch/nightly --amount vcore=40 --amount memory=80G

allocate --id build-7 --ttl 24h --user zoe --at ci:tenants/web --item aws-account --amount cores=8 --data job=$hostile
allocate --id build-8 --ttl 24h --user zoe --at ci:tenants/web --item aws-quota-slice=4 --amount cores=24
allocate --id table-1 --ttl 24h --user yan --at ci:tenants/data --item cluster=1 --for 20h
allocate --id build-9 --user zoe --at ci:tenants/web --item aws-account --wait $never --async --keep 1h
allocate --id $hostileID --user $hostile --group $hostile --application $hostile --label note=$hostile --at ci:tenants --amount cores=2

limit set cern:atlas/operations/web cores=25 --actor ann --reason $hostile
limit set labs:atlas cores=5 --actor ann --reason shrink
node cordon cern:atlas/operations/workflow --actor ann --reason $hostile
`

// refused are commands that must fail: they leave traces that the dashboard shows.
const refused = `
allocate --id never-1 --user $hostile --at cern:atlas/physics/higgs --amount cores=25
allocate --id never-2 --at ci:tenants/web --amount cores=500
`

func fill(t *testing.T, s *server) {
	t.Helper()
	play(t, s, scenario)
	for _, args := range commandsOf(t, refused) {
		if out, err := s.Try(t, args...); err == nil {
			t.Fatalf("%v is not refused: %s", args, out)
		}
	}
}

// play runs commands that must not fail; requests may wait.
func play(t *testing.T, s *server, script string) {
	t.Helper()
	for _, args := range commandsOf(t, script) {
		if out, err := s.Try(t, args...); err != nil && !strings.Contains(err.Error(), "exit status 9") {
			t.Fatal(out, err)
		}
	}
}

func commandsOf(t *testing.T, script string) [][]string {
	t.Helper()
	manifest, err := filepath.Abs("testdata/hostile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("$tour", "testdata/tour.yaml", "$hostileManifest", manifest, "$hostileID", hostileID, "$hostile", hostile, "$never", never)
	var all [][]string
	for line := range strings.Lines(script) {
		args := strings.Fields(line)
		if len(args) == 0 {
			continue
		}
		for i, word := range args {
			args[i] = words.Replace(word)
			if strings.HasPrefix(word, "examples/") {
				args[i] = filepath.Join(root, word)
			}
		}
		all = append(all, args)
	}
	return all
}
