package scenarios

import (
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

const java = "../java"

func TestJava(t *testing.T) {
	verify.Only(t) // a minute
	requireTools(t, "javac")
	classes := t.TempDir()
	mustRun(t, java, "javac", "-Xlint:all,-serial", "-Werror", "-d", classes, "Quorate.java", "ScenarioPlayer.java")
	playEverything(t, func(t *testing.T, servers []string) *player {
		t.Helper()
		p := startProcess(t, servers, []string{"java", "-cp", classes, "ScenarioPlayer"})
		p.withdrawsOnSignal = true
		return p
	})
}

// TestJavaUnits tests what the scenarios do not reach: the JSON of the file.
func TestJavaUnits(t *testing.T) {
	verify.Only(t) // a minute
	requireTools(t, "javac")
	classes := t.TempDir()
	mustRun(t, java, "javac", "-d", classes, "Quorate.java", "QuorateTest.java")
	mustRun(t, java, "java", "-ea", "-cp", classes, "QuorateTest")
}

func TestJavaExample(t *testing.T) {
	verify.Only(t) // a minute
	requireTools(t, "javac")
	testExample(t, startCluster(t), example{[]string{"java", java + "/Quorate.java"}})
}
