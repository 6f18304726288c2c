package server

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"
)

const deployed = "../../deploy/quorate.yaml"

// TestTheDeployedConfigurationIsUnderstood parses the deployed file, which claims to have every key, and checks that
// claim.
func TestTheDeployedConfigurationIsUnderstood(t *testing.T) {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Set(ConfigFlag, deployed); err != nil {
		t.Fatal(err)
	}
	s, err := Load(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "n1" || s.BootstrapExpect != 3 || len(s.Join) != 3 || s.DataDir != "/var/lib/quorate" {
		t.Errorf("read %+v", s)
	}
	if err := s.nodeConfig("devel", nil).WithDefaults().Validate(); err != nil {
		t.Errorf("no node would take it: %v", err)
	}
	text, err := os.ReadFile(deployed)
	if err != nil {
		t.Fatal(err)
	}
	for key := range settingsByKey() {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `:`).Match(text) {
			t.Errorf("%s does not show the key %s", deployed, key)
		}
	}
}

// TestTheUnitIsUnderstood asks systemd, which complains about unknown settings without failing.
func TestTheUnitIsUnderstood(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile("../../deploy/quorate.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "quorate.service") // with a binary that exists
	if err := os.WriteFile(unit, bytes.ReplaceAll(text, []byte("ExecStart=/usr/bin/quorate"),
		[]byte("ExecStart=/bin/sh")), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput()
	// its output may include other units of this machine
	if err != nil || bytes.Contains(said, []byte("quorate.service")) {
		t.Errorf("%v\n%s", err, said)
	}
}
