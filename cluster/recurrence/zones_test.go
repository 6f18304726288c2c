package recurrence_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/quota"
)

// TestTheCompiledTableIsWhole: each name of the text has a zone that can be read, and the table does not depend on the
// machine or its environment.
func TestTheCompiledTableIsWhole(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	archive, err := zip.OpenReader("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = archive.Close() })
	zones := recurrence.CompiledZones()
	for _, file := range archive.File {
		if location, err := zones.Load(file.Name); file.Name != "tzdata.zi" &&
			(err != nil || location.String() != file.Name) {
			t.Errorf("%s: %v, %v", file.Name, location, err)
		}
	}
	if n := len(archive.File); n < 500 {
		t.Errorf("the table has only %d files", n)
	}
	if !regexp.MustCompile(`^20[2-9][0-9][a-z]$`).MatchString(zones.Version()) {
		t.Errorf("the version of the table is %q", zones.Version())
	}
}

// TestTheCompiledTableIsNotOld: it is at least as new as that of the Go version that builds the program.
func TestTheCompiledTableIsNotOld(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no go command to compare with")
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "update.bash"))
	if err != nil {
		t.Skip(err)
	}
	found := regexp.MustCompile(`(?m)^DATA=(\w+)$`).FindSubmatch(script)
	if found == nil {
		t.Skip("the Go version does not say which table it has")
	}
	if ours := recurrence.CompiledZones().Version(); ours < string(found[1]) {
		t.Errorf("the compiled table is %s, and Go has %s: make it again (make_zones.go)", ours, found[1])
	}
}

// TestATableOfAFolder: a folder has its own version, rules and names, and neither files beside the table nor names of
// the compiled table count.
func TestATableOfAFolder(t *testing.T) {
	folder := t.TempDir()
	zurich := fileOfTable(t, "Europe/Zurich")
	for name, content := range map[string]string{
		"tzdata.zi": "# version 1999z\n# redo posix_only\nR Q 1 o - O 1 0 1 -\nZ Europe/Berne 1 - CET\n" +
			"L Europe/Berne Swiss\nL Europe/Berne Lacking\nL Europe/Berne ../outside\n",
		"Europe/Berne": zurich, "Swiss": zurich, "localtime": zurich, "right/Europe/Berne": zurich,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	zones, err := recurrence.OpenZones(folder)
	if err != nil {
		t.Fatal(err)
	}
	if zones.Version() != "1999z" {
		t.Errorf("the version is %q", zones.Version())
	}
	rule, err := zones.Parse("daily 18:00-08:00 Europe/Berne")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2027, 1, 10, 12, 0, 0, 0, time.UTC).UnixMilli()
	if w := rule.Windows(quota.CivilTime(noon), 0, 1); len(w) != 1 || w[0].From.String()[:16] != "2027-01-10T17:00" {
		t.Errorf("the windows are %v", w)
	}
	if _, err := zones.Load("Swiss"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"localtime": "is not a time zone", "right/Europe/Berne": "is not a time zone",
		"Europe/Zurich": "is not a time zone", "Lacking": "the table 1999z of time zones lacks Lacking",
		"../outside": "is not a time zone",
	} {
		if _, err := zones.Load(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
	}
}

// TestFoldersWithoutATable are refused with the reason.
func TestFoldersWithoutATable(t *testing.T) {
	folder := t.TempDir()
	if _, err := recurrence.OpenZones(folder); err == nil || !strings.Contains(err.Error(), "tzdata.zi") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, text := range []string{
		"", "# version 2026f\n", "Z Europe/Zurich 1 - CET\n", "# version\nZ Europe/Zurich 1 - CET\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, "tzdata.zi"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if z, err := recurrence.OpenZones(folder); err == nil || !strings.Contains(err.Error(), folder) {
			t.Errorf("a folder with %q: %v, %v", text, z, err)
		}
	}
}

func fileOfTable(t *testing.T, name string) string {
	t.Helper()
	archive, err := zip.OpenReader("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = archive.Close() })
	content, err := fs.ReadFile(archive, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
