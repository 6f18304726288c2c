package scenarios

import (
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

const curl = "../curl"

func TestCurl(t *testing.T) {
	playEverything(t, func(t *testing.T, servers []string) *player {
		t.Helper()
		return startProcess(t, servers, []string{curl + "/scenario_player.sh"})
	}, "curl", "jq")
}

func TestCurlExample(t *testing.T) {
	verify.Only(t) // ten seconds
	requireTools(t, "curl", "jq")
	testExample(t, startCluster(t), example{[]string{curl + "/example.sh"}})
}
