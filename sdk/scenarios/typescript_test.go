package scenarios

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

const typescript = "../typescript"

// requireTypeScript builds the client once, or skips. The modules are those that make sdk-typescript has installed.
func requireTypeScript(t *testing.T) {
	t.Helper()
	verify.Only(t) // a minute
	requireTools(t, "npm", typescript+"/node_modules/.bin/tsc")
	mustRun(t, typescript, "npm", "run", "--silent", "build")
	mustRun(t, typescript, "node_modules/.bin/tsc", "-p", "tsconfig.tests.json")
}

func startTypeScript(t *testing.T, servers []string) *player {
	t.Helper()
	p := startProcess(t, servers, []string{"node", typescript + "/.build/scenario_player.js"})
	p.withdrawsOnSignal = true
	return p
}

func TestTypeScript(t *testing.T) {
	requireTypeScript(t)
	playEverything(t, startTypeScript)
}

// TestTypeScriptUnits runs the client's own tests against servers of their own.
func TestTypeScriptUnits(t *testing.T) {
	requireTypeScript(t)
	out := mustRun(t, typescript, "node", "--test", ".build/tests/")
	if !strings.Contains(out, "fail 0") || strings.Contains(out, "pass 0") {
		t.Errorf("not all tests have run:\n%s", out)
	}
}

func TestTypeScriptExample(t *testing.T) {
	requireTypeScript(t)
	testExample(t, startCluster(t), example{[]string{"node", typescript + "/.build/example.js"}})
}
