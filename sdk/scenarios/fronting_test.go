package scenarios

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// throughProxies are the scenarios that are played through each proxy: calls, waiting calls, and streams over the
// death of a server.
var throughProxies = map[string]bool{
	"acquire and release": true, "wait for a grant": true, "a watch resumes at another server": true,
}

// TestNginx plays scenarios through nginx as docs/fronting.md configures it.
func TestNginx(t *testing.T) { playThroughProxy(t, "nginx", configureNginx) }

// TestPlainNginx plays them through nginx as it is without settings: with HTTP/1.0 to the servers, over which it
// collects answers unless they forbid that.
func TestPlainNginx(t *testing.T) {
	setting := regexp.MustCompile(`(?m)^ +proxy_(http_version|set_header Connection|request_buffering).*$`)
	playThroughProxy(t, "nginx", func(block, folder string) (config string, command []string) {
		if !setting.MatchString(block) {
			t.Fatal("docs/fronting.md does not set the version of HTTP")
		}
		return configureNginx(setting.ReplaceAllString(block, ""), folder)
	})
}

func configureNginx(block, folder string) (config string, command []string) {
	config = "daemon off; master_process off; pid " + folder + "/pid; error_log stderr;\nevents {}\nhttp {\n" +
		"access_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += kind + "_temp_path " + folder + "/" + kind + ";\n"
	}
	return config + block + "}\n", []string{"nginx", "-p", folder, "-c"}
}

// TestHAProxy plays scenarios through HAProxy as docs/fronting.md configures it.
func TestHAProxy(t *testing.T) {
	playThroughProxy(t, "haproxy", func(block, _ string) (config string, command []string) {
		return block, []string{"haproxy", "-db", "-f"}
	})
}

func playThroughProxy(t *testing.T, program string, configure func(block, folder string) (string, []string)) {
	t.Helper()
	verify.Only(t) // a minute
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("this machine has no %s: install Debian's package of that name", program)
	}
	c, folder := startCluster(t), t.TempDir()
	address := freeAddress(t)
	block := strings.NewReplacer("127.0.0.1:8080", address, "10.0.0.1:7101", c.Servers[0].HTTP,
		"10.0.0.2:7101", c.Servers[1].HTTP, "10.0.0.3:7101", c.Servers[2].HTTP).Replace(blockOf(t, program))
	config, command := configure(block, folder)
	file := filepath.Join(folder, "config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said servertest.Buffer
	proxy := exec.Command(command[0], append(command[1:], file)...)
	proxy.Stdout, proxy.Stderr = &said, &said
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Kill()
		_ = proxy.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s says:\n%s", program, said.String())
		}
	})
	servertest.Await(t, patience, program+" listens", func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	for _, s := range readScript(t, program).Scenarios {
		if !throughProxies[s.Name] {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			playScenario(t, c, func(t *testing.T, _ []string) *player {
				t.Helper()
				return startGo(t, []string{"http://" + address})
			}, s)
		})
	}
}

func blockOf(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/fronting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	block, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatalf("docs/fronting.md has no configuration of %s", language)
	}
	return block
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the port is free then
	return listener.Addr().String()
}
