package server

import (
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; read the diff before you commit it")

func loadWith(t *testing.T, environ []string, args ...string) (Settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, environ)
}

// TestEverySettingIsAFlag: a key has the same name everywhere.
func TestEverySettingIsAFlag(t *testing.T) {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	AddFlags(flags)
	known := settingsByKey()
	flags.VisitAll(func(f *pflag.Flag) {
		if _, found := known[f.Name]; !found && f.Name != ConfigFlag {
			t.Errorf("--%s is not a setting", f.Name)
		}
	})
	for key := range known {
		if flags.Lookup(key) == nil {
			t.Errorf("%s is not a flag", key)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		if field.Tag.Get("koanf") != field.Tag.Get("yaml") {
			t.Errorf("%s has two names", field.Name)
		}
	}
}

func TestWhichSettingWins(t *testing.T) {
	file := t.TempDir() + "/quorate.yaml"
	if err := os.WriteFile(file, []byte("id: file\ndata-dir: file\ncluster-name: file\njoin: [a:1, b:2]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"QUORATE_SERVER_DATA_DIR=env", "QUORATE_SERVER_CLUSTER_NAME=env", "QUORATE_SERVER=http://x",
		"QUORATE_SERVER_SNAPSHOT_CHECK=5s", "OTHER=1",
	}
	s, err := loadWith(t, environ, "--config", file, "--cluster-name", "flag")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(append([]string{s.ID, s.DataDir, s.ClusterName, s.HTTPAddr, s.SnapshotCheck.String()},
		s.Join...), " ")
	if got != "file env flag 127.0.0.1:7101 5s a:1 b:2" {
		t.Errorf("got %s", got)
	}
	if s, err = loadWith(t, append(environ, "QUORATE_SERVER_JOIN=c:3,d:4", "QUORATE_SERVER_ID=env"), "--config",
		file); err != nil || strings.Join(s.Join, " ") != "c:3 d:4" || s.ID != "env" {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err = loadWith(t, []string{"QUORATE_SERVER_BOOTSTRAP_EXPECT=three"}, "--config",
		file); err == nil || !strings.Contains(err.Error(), "bootstrap-expect") {
		t.Errorf("a word for a number: %v", err)
	}
}

// TestTimesHaveDays: times are written with days wherever a setting comes from, and a faulty one is named.
func TestTimesHaveDays(t *testing.T) {
	file := t.TempDir() + "/quorate.yaml"
	text := []byte("id: a\ndata-dir: a\nbackup-every: 2d\nraise-level-after: 90m\n")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := loadWith(t, []string{"QUORATE_SERVER_REMOVE_DEAD_AFTER=1d12h"}, "--config", file, "--checkpoint-every", "7d")
	if err != nil {
		t.Fatal(err)
	}
	got := [...]time.Duration{s.BackupEvery, s.RaiseLevelAfter, s.RemoveDeadAfter, s.CheckpointEvery}
	want := [...]time.Duration{48 * time.Hour, 90 * time.Minute, 36 * time.Hour, 168 * time.Hour}
	if got != want {
		t.Errorf("times are %v, want %v", got, want)
	}
	_, err = loadWith(t, []string{"QUORATE_SERVER_BACKUP_EVERY=1 day"}, "--config", file)
	if err == nil || !strings.Contains(err.Error(), `backup-every: "1 day" is not a time: write days`) {
		t.Errorf("a faulty time: %v", err)
	}
}

// TestThePageOfSettings compares docs/server.md with the struct; -args -rewrite rewrites the page.
func TestThePageOfSettings(t *testing.T) {
	const page = "../../docs/server.md"
	if *rewrite {
		if err := os.WriteFile(page, []byte(settingsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != settingsPage() {
		t.Errorf("%s is not what the settings say: make golden writes it anew", page)
	}
}

// TestReload: settings that can change are applied, changes of others are reported and ignored, and an invalid file
// changes nothing.
func TestReload(t *testing.T) {
	var logged strings.Builder
	log := hclog.New(&hclog.LoggerOptions{Output: &logged})
	next, fault := Settings{ID: "n1", LogLevel: "debug", DataDir: "other"}, error(nil)
	printed := ""
	r := reloader{
		load: func() (Settings, error) { return next, fault }, log: log,
		now: Settings{ID: "n1", LogLevel: "info", DataDir: "data"},
		steps: []reloadStep{
			{"broken", func(Settings) error { return errors.New("it is broken") }},
			{"sound", func(s Settings) error { printed = s.LogLevel + " " + s.DataDir; return nil }},
		},
	}
	r.reload()
	if printed != "debug data" || r.now.DataDir != "data" {
		t.Errorf("the step was told %q, and the settings are %+v", printed, r.now)
	}
	for _, line := range []string{
		"a changed setting needs a restart: setting=data-dir",
		"a setting has changed: setting=log-level", "what=broken error=\"it is broken\"",
	} {
		if !strings.Contains(logged.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, logged.String())
		}
	}
	printed, fault = "", errors.New("no such key")
	r.reload()
	if printed != "" || !strings.Contains(logged.String(), "no such key") {
		t.Errorf("told %q after a fault; the log:\n%s", printed, logged.String())
	}
}
