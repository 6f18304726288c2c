package gossip

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestMemberlistLogHasKeys: what varies in a line of memberlist is a key.
func TestMemberlistLogHasKeys(t *testing.T) {
	for line, want := range map[string]string{
		"[INFO] memberlist: Suspect n2 has failed, no acks received": "[INFO]  Suspect has failed, no acks received: node=n2",
		"[INFO] memberlist: Marking n2 as failed, suspect timeout reached (1 peer confirmations)": "[INFO]  Marking as " +
			"failed, suspect timeout reached: node=n2 confirmations=1",
		"[WARN] memberlist: Refuting a suspect message (from: n3)": "[WARN]  Refuting a suspect message: from=n3",
		"[WARN] memberlist: Refuting an alive message for 'n1' (10.0.0.1:7301) meta:([1 2] VS [3]), vsn:([1] VS [1])": "" +
			"[WARN]  Refuting an alive message: node=n1 address=10.0.0.1:7301",
		"[ERR] memberlist: Push/Pull with n2 failed: dial tcp: refused": "[ERROR] Push/Pull failed: node=n2 " +
			`error="dial tcp: refused"`,
		"[ERR] memberlist: Failed to send UDP ping: broken": "[ERROR] Failed to send UDP ping: error=broken",
		"[ERR] memberlist: Decrypt packet failed: no key from=10.0.0.9:99": "[ERROR] Decrypt packet failed: " +
			`error="no key" from=10.0.0.9:99`,
		"[WARN] memberlist: Binding to public address without encryption!": "[WARN]  Binding to public address without " +
			"encryption!",
	} {
		var out bytes.Buffer
		logger := hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true})
		writeLine(t, &memberlistLog{log: logger}, line)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%q is logged as\n%s\nwant\n%s", line, got, want)
		}
	}
}

// TestMemberlistLogLeavesOutRepeats: a message about a node appears at once and then every minute with the number of
// those that were left out, and many nodes cannot fill the log.
func TestMemberlistLogLeavesOutRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true})
		lines := &memberlistLog{log: logger}
		for i := range 90 {
			writeLine(t, lines, fmt.Sprintf("[ERR] memberlist: Push/Pull with n2 failed: dial %d", i))
			writeLine(t, lines, fmt.Sprintf("[ERR] memberlist: Failed to receive: broken from=10.0.0.9:%d", i))
			time.Sleep(time.Second)
		}
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(got) != 4 || !strings.HasSuffix(got[2], "repeated=59") || !strings.HasSuffix(got[3], "repeated=59") {
			t.Errorf("the log has the lines\n%s", out.String())
		}
		out.Reset()
		for i := range 5 * maxLines {
			writeLine(t, lines, fmt.Sprintf("[ERR] memberlist: Failed to receive: broken from=10.1.0.%d:1", i))
		}
		if n := strings.Count(out.String(), "\n"); n != maxLines {
			t.Errorf("%d senders filled %d lines, want %d", 5*maxLines, n, maxLines)
		}
	})
}

func writeLine(t *testing.T, to *memberlistLog, line string) {
	t.Helper()
	if _, err := to.Write([]byte(line + "\n")); err != nil {
		t.Error(err)
	}
}
