// Package packaging installs, starts, upgrades and removes the packages of a release in clean roots.
package packaging

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// built is where make package puts its results, and clean a Debian root that is kept between runs.
const (
	built = "../../.cache/package/dist"
	clean = "../../.cache/package/debian"
)

// requirePackages skips a test where packages were not built; make verify-package builds them and sets the variable.
func requirePackages(t *testing.T) {
	t.Helper()
	if os.Getenv("QUORATE_PACKAGES") != "require" {
		t.Skip("make verify-package builds the packages and runs this test")
	}
}

func packageFile(t *testing.T, format string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built, "artifacts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var artifacts []struct{ Name, Type, Goarch string }
	if err := json.Unmarshal(text, &artifacts); err != nil {
		t.Fatal(err)
	}
	for _, a := range artifacts {
		if a.Goarch == runtime.GOARCH && strings.HasSuffix(a.Name, "."+format) {
			path, err := filepath.Abs(filepath.Join(built, a.Name))
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("there is no %s for %s", format, runtime.GOARCH)
	return ""
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

func cleanRoot(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(clean, "usr/bin/dpkg")); err != nil {
		run(t, "debootstrap", "--variant=minbase", "bookworm", clean)
	}
	root := t.TempDir()
	run(t, "cp", "-a", clean+"/.", root)
	return root
}

// in runs a command in a root, which has its own processes, names and network.
func in(t *testing.T, root, command string) string {
	t.Helper()
	return run(t, "unshare", "--mount", "--pid", "--net", "--uts", "--fork", "/bin/sh", "-ec",
		`ip link set lo up; mount -t proc none "$0/proc"; exec chroot "$0" /bin/sh -ec "$1"`, root, command)
}

// serve runs the installed server alone, calls it, and stops it: with the configuration that was installed, but for the
// addresses of other machines and their certificates.
const serve = `
mkdir -p /var/lib/quorate
quorate server run --config /etc/quorate/quorate.yaml --bootstrap-expect 1 --join= --tls-ca= --tls-cert= --tls-key= \
  --tls-client-auth none --gossip-keys-file= --http-addr 127.0.0.1:7101 --raft-addr 127.0.0.1:7201 \
  --gossip-addr 127.0.0.1:7301 >/tmp/log 2>&1 &
server=$!
quorate cluster wait --timeout 60s >/tmp/waited 2>&1 || { cat /tmp/waited /tmp/log; exit 1; }
quorate status
kill -TERM $server
wait $server || { cat /tmp/log; exit 1; }
`

// TestDebianPackage installs, starts, upgrades, removes and purges the package.
func TestDebianPackage(t *testing.T) {
	requirePackages(t)
	file, root := packageFile(t, "deb"), cleanRoot(t)
	run(t, "cp", file, filepath.Join(root, "quorate.deb"))
	in(t, root, "dpkg -i /quorate.deb")
	checkInstalled(t, root)
	if text := in(t, root, serve); !strings.Contains(text, "leader") {
		t.Errorf("the installed server does not lead:\n%s", text)
	}

	in(t, root, "echo '# ours' >>/etc/quorate/quorate.yaml; dpkg -i /quorate.deb")
	if text := in(t, root, "cat /etc/quorate/quorate.yaml"); !strings.Contains(text, "# ours") {
		t.Error("an upgrade replaced a configuration that was edited")
	}
	in(t, root, "dpkg -r quorate")
	wantFiles(t, root, []string{"etc/quorate/quorate.yaml", "var/lib/quorate"}, []string{"usr/bin/quorate", unitFile})
	in(t, root, "dpkg -P quorate")
	wantFiles(t, root, []string{"var/lib/quorate"}, []string{"etc/quorate/quorate.yaml"})
}

// TestRPMPackage does the same with rpm, in a root with a shell.
func TestRPMPackage(t *testing.T) {
	requirePackages(t)
	file, root := packageFile(t, "rpm"), cleanRoot(t)
	// The root has no packages of rpm, so nothing that this one needs is known there.
	rpm := func(args ...string) { run(t, "rpm", append([]string{"--root", root}, args...)...) }
	rpm("--initdb")
	rpm("-i", "--nodeps", file)
	checkInstalled(t, root)
	in(t, root, serve)
	in(t, root, "echo '# ours' >>/etc/quorate/quorate.yaml")
	rpm("-U", "--nodeps", "--replacepkgs", file)
	if text := in(t, root, "cat /etc/quorate/quorate.yaml"); !strings.Contains(text, "# ours") {
		t.Error("an upgrade replaced a configuration that was edited")
	}
	rpm("-e", "--nodeps", "quorate")
	wantFiles(t, root, []string{"var/lib/quorate"}, []string{"usr/bin/quorate", unitFile})
}

const unitFile = "usr/lib/systemd/system/quorate.service"

// checkInstalled looks at what an installed package is for.
func checkInstalled(t *testing.T, root string) {
	t.Helper()
	wantFiles(t, root, []string{
		"usr/bin/quorate", unitFile, "etc/quorate/quorate.yaml", "etc/quorate/tls", "usr/share/man/man1/quorate.1.gz",
		"usr/share/man/man1/quorate-lease-run.1.gz", "usr/share/bash-completion/completions/quorate",
		"usr/share/fish/vendor_completions.d/quorate.fish", "usr/share/doc/quorate/licences.txt",
	}, nil)
	if text := in(t, root, "quorate version"); !strings.HasPrefix(text, "quorate v") {
		t.Errorf("quorate version: %s", text)
	}
	if text := in(t, root, "stat -c '%a %U:%G' /etc/quorate/tls"); text != "750 root:quorate-tls\n" {
		t.Errorf("the folder for keys is %s", text)
	}
}

func wantFiles(t *testing.T, root string, present, absent []string) {
	t.Helper()
	for _, name := range present {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range absent {
		if _, err := os.Stat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// TestPackagesKeepToTheRules asks the checkers of the distributions.
func TestPackagesKeepToTheRules(t *testing.T) {
	requirePackages(t)
	// The field Architecture-Variant, which goreleaser writes, is newer than the lintian of some releases.
	run(t, "lintian", "--fail-on", "error,warning", "--allow-root", "--suppress-tags", "unknown-field",
		packageFile(t, "deb"))
	said := run(t, "rpmlint", "-c", "rpmlint.toml", packageFile(t, "rpm"))
	if !strings.Contains(said, " 0 errors, 0 warnings") {
		t.Error(said)
	}
}

// TestAlpinePackage looks into the package, because the tools of Alpine are not to be had everywhere.
func TestAlpinePackage(t *testing.T) {
	requirePackages(t)
	said := run(t, "tar", "-tzf", packageFile(t, "apk"))
	for _, name := range []string{".PKGINFO", "usr/bin/quorate", "etc/quorate/quorate.yaml", ".post-install"} {
		if !strings.Contains(said, name+"\n") {
			t.Errorf("the package has no %s:\n%s", name, said)
		}
	}
}

// TestClientsChartAndBills looks into the files beside the binary: what is in them, with a licence, under the version
// of the release.
func TestClientsChartAndBills(t *testing.T) {
	requirePackages(t)
	for pattern, want := range map[string][]string{
		"quorate-client-*.tgz": {"package/LICENSE", "package/dist/index.js", "package/dist/index.d.ts"},
		"quorate-*.whl":        {"quorate/client.py", "quorate/v1/tree.py", "quorate/py.typed", "dist-info/LICENSE"},
		"quorate-chart-*.tgz":  {"quorate/Chart.yaml", "quorate/values.yaml", "quorate/templates/statefulset.yaml"},
	} {
		list := []string{"tar", "-tzf"}
		if strings.HasSuffix(pattern, ".whl") {
			list = []string{"python3", "-m", "zipfile", "-l"}
		}
		said := run(t, list[0], append(list[1:], extra(t, pattern))...)
		for _, name := range want {
			if !strings.Contains(said, name) {
				t.Errorf("%s has no %s:\n%s", pattern, name, said)
			}
		}
	}
	for pattern, want := range map[string]string{
		"quorate_*.cdx.json": "github.com/hashicorp/raft", "quorate-dashboard_*.cdx.json": "preact",
	} {
		text, err := os.ReadFile(extra(t, pattern))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name string }
		}
		if err := json.Unmarshal(text, &bill); err != nil || bill.Metadata.Component.Version == "" {
			t.Errorf("%s: %v, of version %q", pattern, err, bill.Metadata.Component.Version)
		}
		if !strings.Contains(fmt.Sprint(bill.Components), "{"+want+"}") {
			t.Errorf("%s has no %s: %v", pattern, want, bill.Components)
		}
	}
}

// extra is the only file beside the archives and packages whose name has the pattern.
func extra(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob("../../.cache/package/extras/" + pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// TestTheSameCommitGivesTheSameBytes builds everything a second time.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	requirePackages(t)
	sums := func() string {
		text, err := os.ReadFile(filepath.Join(built, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := sums()
	if n := strings.Count(first, "\n"); n != 16 {
		t.Errorf("%d files were built, want 5 archives, 6 packages, 2 clients, the chart and 2 bills of materials", n)
	}
	time.Sleep(1100 * time.Millisecond) // times are in seconds
	run(t, "make", "-C", "../..", "package")
	if second := sums(); second != first {
		t.Errorf("built twice:\n%s\nand\n%s", first, second)
	}
}
