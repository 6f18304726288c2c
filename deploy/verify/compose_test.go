package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/quorate/quorate/internal/servertest"
)

func loadCompose(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestComposeFile: Compose's own library accepts the file; every service of Quorate is confined, and profiles add the
// rest.
func TestComposeFile(t *testing.T) {
	for profile, want := range map[string][]string{
		"":           {"certificates", "n1", "n2", "n3"},
		"prometheus": {"certificates", "n1", "n2", "n3", "prometheus"},
		"cli":        {"certificates", "cli", "n1", "n2", "n3"},
	} {
		if got := loadCompose(t, profile).ServiceNames(); !slices.Equal(got, want) {
			t.Errorf("profile %q has %v, want %v", profile, got, want)
		}
	}
	for name, s := range loadCompose(t, "prometheus", "cli").Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.Privileged {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is reachable from other machines: %+v", name, port)
			}
		}
	}
}

// environmentOf is the environment of a service as a process has it.
func environmentOf(s types.ServiceConfig) (list []string) {
	for name, value := range s.Environment {
		if value != nil {
			list = append(list, name+"="+*value)
		}
	}
	slices.Sort(list)
	return list
}

// place is what the addresses of a service are on this machine, and where its volumes are.
func place(t *testing.T, service string, ports map[string]string, dir string) *strings.Replacer {
	t.Helper()
	pairs := []string{
		"/etc/quorate/tls", filepath.Join(dir, "tls"),
		"/usr/bin/quorate", servertest.Quorate.Path(t),
	}
	for name, address := range ports { // n1:7101
		pairs = append(pairs, name, address)
		if own, port, _ := strings.Cut(name, ":"); own == service {
			pairs = append(pairs, "0.0.0.0:"+port, address)
		}
	}
	volume := service
	if service == "certificates" {
		volume = "tls"
	}
	return strings.NewReplacer(append(pairs, "/var/lib/quorate", filepath.Join(dir, volume))...)
}

// TestComposeCluster: the commands and environments of the file, with addresses of loopback, make a cluster of three
// encrypted servers that pass their health checks, and the command line of the file reaches them.
func TestComposeCluster(t *testing.T) {
	project := loadCompose(t, "cli")
	dir, free, ports := t.TempDir(), servertest.FreePorts(t, 12), map[string]string{}
	for i := range 3 {
		for j, port := range []string{"7101", "7201", "7301", "7401"} {
			ports[fmt.Sprintf("n%d:%s", i+1, port)] = free[4*i+j]
		}
	}
	certificates := project.Services["certificates"]
	for _, says := range []string{"bootstrap.secret", "kept"} {
		code, out := runQuorate(t, nil, mapped(certificates.Command, place(t, "certificates", ports, dir))...)
		if code != 0 || !strings.Contains(out, says) {
			t.Fatalf("certificates: exit code %d\n%s\nwant it to say %q", code, out, says)
		}
	}
	servers := []string{"n1", "n2", "n3"}
	for _, name := range servers {
		s, at := project.Services[name], place(t, name, ports, dir)
		startQuorate(t, mapped(environmentOf(s), at), mapped(s.Command, at))
	}
	for _, name := range servers {
		s, at := project.Services[name], place(t, name, ports, dir)
		if code, out := runQuorate(t, mapped(environmentOf(s), at), append(s.Command, "--check")...); code != 0 {
			t.Errorf("settings of %s: %s", name, out)
		}
		test := mapped(s.HealthCheck.Test, at)
		if len(test) < 3 || test[0] != "CMD" || test[1] != servertest.Quorate.Path(t) {
			t.Fatalf("health check of %s: %v", name, test)
		}
		if out := await(t, mapped(environmentOf(s), at), test[2:]...); !strings.Contains(out, "is ready") {
			t.Errorf("%s: %s", name, out)
		}
	}
	cli, at := project.Services["cli"], place(t, "cli", ports, dir)
	out := await(t, mapped(environmentOf(cli), at), "cluster", "wait", "--voters", "3", "--healthy")
	if code, more := runQuorate(t, mapped(environmentOf(cli), at), mapped(cli.Command, at)...); code != 0 ||
		strings.Count(more, " yes ") != 3 {
		t.Errorf("status: exit code %d\n%s\n%s", code, out, more)
	}
}
