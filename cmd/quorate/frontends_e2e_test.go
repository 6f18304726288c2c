package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// TestYuniKornCases converts the configurations that YuniKorn accepts and refuses those that it rejects.
func TestYuniKornCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../compat/yunikorn/testdata/cases/*.yaml")
	if err != nil || len(files) < 41 {
		t.Fatalf("found %d cases, %v", len(files), err)
	}
	for i, file := range files {
		if i%verify.Scale(5, 1) != 0 { // compat/yunikorn converts all of them without the binary
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := 1
		if strings.Contains(string(text), "\n# expect: accept\n") {
			code = 0
		}
		if end := runCommand(t, "manifest", "convert", "--from", "yunikorn", file); end.code != code ||
			(end.stdout != "") != (code == 0) {
			t.Errorf("%s: exit code %d, want %d\n%s%s", filepath.Base(file), end.code, code, end.stdout, end.stderr)
		}
	}
}

// TestYuniKornOverACluster applies queues to three replicas, admits one pod and denies the next, and expects the same
// limits and usage from the REST API of every node.
func TestYuniKornOverACluster(t *testing.T) {
	verify.Only(t) // TestYuniKornCases covers this front end in short mode
	t.Parallel()
	nodes, servers := threeServers(t), map[string]*process{}
	for i := range nodes {
		nodes[i].more = append(nodes[i].more, "--front-ends", "yunikorn")
		servers[nodes[i].id] = startProcess(t, nodes[i].commandLine()...)
	}
	for _, f := range nodes {
		awaitReady(t, servers[f.id], f)
	}
	pod := "--at default:dev --amount memory=8G --user sue --group development --application app-1 --amount "
	playSteps(t, nodes[0], []step{
		{"apply --from yunikorn -f ../../examples/yunikorn/queues.yaml", 0, "revision 1"},
		{"allocate --id pod-1 " + pod + "vcore=2", 0, "granted"},
		{"allocate --id pod-2 " + pod + "vcore=4", 3, "user sue"},
	})
	for path, want := range yunikornAnswers {
		for _, f := range nodes {
			status, body := httpGet(t, f.baseURL()+"/ws/v1/partition/default/"+path)
			if status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s of %s: %d\n%s\nwant\n%s", path, f.id, status, body, want)
			}
			if _, first := httpGet(t, nodes[0].baseURL()+"/ws/v1/partition/default/"+path); body != first {
				t.Errorf("%s: %s answers\n%s\nand %s\n%s", path, f.id, body, nodes[0].id, first)
			}
		}
	}
	if status, body := httpGet(t, nodes[1].baseURL()+"/ws/v1/partition/nowhere/queues"); status != http.StatusNotFound {
		t.Errorf("an unknown partition: %d %s", status, body)
	}
	if status, body := httpPost(t, nodes[2].baseURL()+"/ws/v1/validate-conf",
		"partitions: []"); body != "{\"allowed\":true}\n" {
		t.Errorf("a good configuration: %d %s", status, body)
	}
}

// The REST answer for one pod: the limits of sue at dev and the wildcard limits at root, with her usage.
const (
	ofSue = `{"userName":"sue","groups":{"app-1":"development"},"queues":{"queuePath":"root",` +
		`"resourceUsage":{"memory":8000000000,"vcore":2000},"runningApplications":["app-1"],` +
		`"maxResources":{"memory":50000000000,"vcore":20000},"maxApplications":10,"children":[{"queuePath":"root.dev",` +
		`"resourceUsage":{"memory":8000000000,"vcore":2000},"runningApplications":["app-1"],` +
		`"maxResources":{"memory":25000000000,"vcore":5000},"maxApplications":2,"children":[]}]}}`
	ofDevelopment = `{"groupName":"development","users":["sue"],"applications":["app-1"],"queues":{"queuePath":"root",` +
		`"resourceUsage":{"memory":8000000000,"vcore":2000},"runningApplications":["app-1"],` +
		`"maxResources":{},"maxApplications":0,"children":[{"queuePath":"root.dev",` +
		`"resourceUsage":{"memory":8000000000,"vcore":2000},"runningApplications":["app-1"],` +
		`"maxResources":{"memory":60000000000,"vcore":30000},"maxApplications":0,"children":[]}]}}`
)

var yunikornAnswers = map[string]string{
	"usage/users":             "[" + ofSue + "]\n",
	"usage/user/sue":          ofSue + "\n",
	"usage/groups":            ofDevelopment,
	"usage/group/development": ofDevelopment + "\n",
	"queues":                  `"allocatedResource":{"memory":8000000000,"vcore":2000}`,
	"queue/root.dev":          `"maxResource":{"memory":100000000000,"vcore":40000}`,
	"queue/root.batch":        `"maxRunningApps":50`,
	"queue/root":              `"runningApps":1`,
}

// The queues that produce the two answers on YuniKorn's design page.
const seedQueues = `partitions:
- name: default
  queues:
  - name: root
    limits:
    - users: [user1]
      maxapplications: 10
    queues:
    - name: default
      limits:
      - users: [user1]
        maxapplications: 10
        maxresources: {memory: 50G, vcore: 100}
    - name: test
      limits:
      - groups: [tester]
        maxapplications: 2
        maxresources: {vcore: 10}
`

// The answers of the design page, with the differences of YuniKorn's own releases: a queue is named by queuePath, a
// group has the list of its applications beside its users, and app1 is counted in no group, because no group has a
// limit in its queues. The empty field maxResources of root.test is empty here too.
const (
	seedUser = `[{"userName":"user1","groups":{"app2":"tester"},"queues":{"queuePath":"root",` +
		`"resourceUsage":{"memory":12000000000,"vcore":12000},"runningApplications":["app1","app2"],` +
		`"maxResources":{},"maxApplications":10,"children":[{"queuePath":"root.default",` +
		`"resourceUsage":{"memory":6000000000,"vcore":6000},"runningApplications":["app1"],` +
		`"maxResources":{"memory":50000000000,"vcore":100000},"maxApplications":10,"children":[]},{"queuePath":"root.test",` +
		`"resourceUsage":{"memory":6000000000,"vcore":6000},"runningApplications":["app2"],` +
		`"maxResources":{},"maxApplications":0,"children":[]}]}}]` + "\n"
	seedGroup = `[{"groupName":"tester","users":["user1"],"applications":["app2"],"queues":{"queuePath":"root",` +
		`"resourceUsage":{"memory":6000000000,"vcore":6000},"runningApplications":["app2"],` +
		`"maxResources":{},"maxApplications":0,"children":[{"queuePath":"root.test",` +
		`"resourceUsage":{"memory":6000000000,"vcore":6000},"runningApplications":["app2"],` +
		`"maxResources":{"vcore":10000},"maxApplications":2,"children":[]}]}}]` + "\n"
)

// TestYuniKornSeed brings a ledger to the state of the examples on the design page and expects the same answers.
func TestYuniKornSeed(t *testing.T) {
	t.Parallel()
	f := singleServer(t, "--front-ends", "yunikorn")
	startServer(t, f)
	file := filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(file, []byte(seedQueues), 0o600); err != nil {
		t.Fatal(err)
	}
	const pod = " --amount memory=6G --amount vcore=6 --user user1 --group tester --application "
	playSteps(t, f, []step{
		{"apply --from yunikorn -f " + file, 0, "revision 1"},
		{"allocate --id pod-1 --at default:default" + pod + "app1", 0, "granted"},
		{"allocate --id pod-2 --at default:test" + pod + "app2", 0, "granted"},
		{
			"allocate --id pod-3 --at default:test" + pod + "app2", 3,
			"group tester, vcore: limit 10, used 6, requested 6, missing 2",
		},
	})
	for path, want := range map[string]string{"users": seedUser, "groups": seedGroup} {
		if status, body := httpGet(t, f.baseURL()+"/ws/v1/partition/default/usage/"+path); status != http.StatusOK ||
			body != want {
			t.Errorf("%s: %d\n%s\nwant\n%s", path, status, body, want)
		}
	}
}

// TestYuniKornUsersWithoutUsage asks for users who hold nothing: the limits of the wildcard apply to them.
func TestYuniKornUsersWithoutUsage(t *testing.T) {
	t.Parallel()
	f := singleServer(t, "--front-ends", "yunikorn")
	startServer(t, f)
	free := filepath.Join(t.TempDir(), "free.yaml")
	if err := os.WriteFile(free, []byte("partitions: [{name: free, queues: []}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{
		{"apply --from yunikorn -f ../../examples/yunikorn/queues.yaml -f " + free, 0, "revision 1"},
		{"principal list default bob", 0, "50G (*)"},
	})
	const root = `{"queuePath":"root","resourceUsage":{},"runningApplications":[],` +
		`"maxResources":{"memory":50000000000,"vcore":20000},"maxApplications":10,"children":[`
	for path, want := range map[string]string{
		"default/usage/user/bob": `{"userName":"bob","groups":{},"queues":` + root + "]}}\n",
		"default/usage/users": `[{"userName":"sue","groups":{},"queues":` + root + `{"queuePath":"root.dev",` +
			`"resourceUsage":{},"runningApplications":[],"maxResources":{"memory":25000000000,"vcore":5000},` +
			`"maxApplications":2,"children":[]}]}}]` + "\n",
		"free/usage/user/bob": `{"status_code":404,"message":"User not found","description":"User not found"}` + "\n",
	} {
		if _, body := httpGet(t, f.baseURL()+"/ws/v1/partition/"+path); body != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, body, want)
		}
	}
}

// TestYuniKornTypesWithoutLimits holds types that the queues do not name, and one that they name no longer.
func TestYuniKornTypesWithoutLimits(t *testing.T) {
	t.Parallel()
	f := singleServer(t, "--front-ends", "yunikorn")
	startServer(t, f)
	example, err := os.ReadFile("../../examples/yunikorn/queues.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limited := filepath.Join(t.TempDir(), "limited.yaml")
	text := strings.Replace(string(example), "{memory: 25G, vcore: 5}", "{memory: 25G, vcore: 5, tape: 1}", 1)
	if err := os.WriteFile(limited, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const queues, sue = " --from yunikorn -f ../../examples/yunikorn/queues.yaml", " --at default:dev --user sue --amount "
	playSteps(t, f, []step{
		{"apply" + queues, 0, "resource pods: count"},
		{"allocate --id a" + sue + "pods=1", 0, "granted"},
		{"allocate --id b" + sue + "nvidia.com/gpu=2", 1, "it has: memory, pods, vcore"},
		{"apply --also-count nvidia.com/gpu" + queues, 0, "+ default  resource nvidia.com/gpu: count"},
		{"allocate --id b" + sue + "nvidia.com/gpu=2", 0, "granted"},
		{"plan" + queues, 0, "nothing to change"},
		{"apply --from yunikorn -f " + limited, 0, "+ default  resource tape: count"},
		{"allocate --id c" + sue + "tape=1", 0, "granted"},
		{"allocate --id d" + sue + "tape=1", 3, "user sue, tape: limit 1"},
		{"apply" + queues, 0, "principals"}, // tape is held, and free from now on
		{"allocate --id d" + sue + "tape=1", 0, "granted"},
		{"manifest convert --also-count tape --from yunikorn ../../examples/yunikorn/queues.yaml", 0, "tape: {unit: count}"},
		{"plan --also-count tape -f ../../examples/cern.yaml", 2, "--also-count is for --from yunikorn"},
		{"plan --also-count tape --from zuul -f ../../examples/zuul/nodepool.yaml", 2, "files of zuul name"},
		{"plan --also-count _/+" + queues, 2, `"_/+" cannot be counted`},
		{"plan" + queues + strings.Repeat(" --also-count a", 501), 2, "--also-count is given 501 times; 500 are allowed"},
	})
	if _, body := httpGet(t, f.baseURL()+"/ws/v1/partition/default/usage/user/sue"); !strings.Contains(body,
		`"resourceUsage":{"nvidia.com/gpu":2,"pods":1,"tape":2}`) {
		t.Errorf("got %s", body)
	}
}

// TestFrontEndsAreOff: a server serves no protocol of another system unless it is asked to, and says so in the form of
// that system.
func TestFrontEndsAreOff(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	for path, want := range map[string]string{
		"/ws/v1/partition/default/queues": `{"status_code":404,"message":"the front end for yunikorn is off: add yunikorn ` +
			`to the setting front-ends of the servers"`,
		"/keystone":           `the front end for keystone is off: add keystone to the setting front-ends of the servers`,
		"/keystone/v3/limits": `"code":404`,
		"/metric":             "the setting front-ends of the server names theirs (boskos=HOST:PORT)",
	} {
		if status, body := httpGet(t, f.baseURL()+path); status != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want 404 and %s", path, status, body, want)
		}
	}
	if status, body := httpPost(t, f.baseURL()+"/acquire?type=a&state=free&dest=busy&owner=me", ""); status !=
		http.StatusNotFound || !strings.Contains(body, "front-ends") {
		t.Errorf("a client of Boskos with the wrong address: %d %s", status, body)
	}
}
