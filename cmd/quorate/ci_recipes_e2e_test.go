//go:build linux

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ciRunner is how the runner of a CI system starts and cancels a step. It ends a step that exceeds its time in the same
// way.
type ciRunner struct {
	section     string // of docs/ci.md
	environment []string
	shell       []string
	ownGroup    bool // the script gets a process group of its own
	cancel      func(t *testing.T, s *ciStep)
	// stubborn is what the tests do first, instead of ending at the first signal.
	stubborn string
	ends     string // how the lease ends
	// leavesOthers is true if what the tests have started is left to itself.
	leavesOthers bool
}

type ciStep struct {
	*process
	folder string
	pids   []int // of the tests, and of what they have started
}

const githubShell = "bash --noprofile --norc -eo pipefail"

// ciRunners are the recipes of docs/ci.md, which has the sources.
var ciRunners = map[string]ciRunner{
	"GitHub Actions": {
		section: "GitHub Actions", environment: []string{"GITHUB_ACTIONS=true", "GITHUB_JOB=unit", "GITHUB_ACTOR=kim"},
		shell: strings.Fields(githubShell), ends: "released",
		cancel: func(t *testing.T, s *ciStep) {
			t.Helper()
			s.sendSignal(t, syscall.SIGINT)
		},
	},
	"GitHub Actions, the tests ignore SIGINT": {
		section: "GitHub Actions", environment: []string{"GITHUB_ACTIONS=true", "GITHUB_JOB=unit", "GITHUB_ACTOR=kim"},
		shell: strings.Fields(githubShell), ends: "released", stubborn: "trap 'echo > interrupted' INT",
		cancel: func(t *testing.T, s *ciStep) {
			t.Helper()
			s.sendSignal(t, syscall.SIGINT)
			awaitTrue(t, func() bool {
				_, err := os.Stat(filepath.Join(s.folder, "interrupted"))
				return err == nil
			})
			s.sendSignal(t, syscall.SIGTERM)
		},
	},
	"GitLab": {
		section: "GitLab", environment: []string{"GITLAB_CI=true", "CI_JOB_NAME=unit", "GITLAB_USER_LOGIN=kim"},
		shell: []string{"bash", "-eo", "pipefail"}, ownGroup: true, cancel: signalStepGroup(syscall.SIGTERM),
		ends: "released",
	},
	"Jenkins": {
		section: "Jenkins", environment: []string{
			"JENKINS_URL=http://jenkins:8080/", "JOB_NAME=unit", "BUILD_USER_ID=kim", "JENKINS_SERVER_COOKIE=durable-4711",
		},
		shell: []string{"sh", "-xe"}, cancel: signalByCookie, ends: "released",
	},
	"Buildkite": {
		section:     "Buildkite",
		environment: []string{"BUILDKITE=true", "BUILDKITE_LABEL=unit", "BUILDKITE_BUILD_CREATOR=kim"},
		shell:       []string{"bash", "-e"}, ownGroup: true, cancel: signalStepGroup(syscall.SIGTERM), ends: "released",
	},
	"Gitea Actions": {
		section: "Gitea Actions", environment: []string{"GITEA_ACTIONS=true", "GITHUB_JOB=unit", "GITHUB_ACTOR=kim"},
		shell: strings.Fields(githubShell), ownGroup: true, cancel: signalStepGroup(syscall.SIGKILL), ends: "expired",
		leavesOthers: true,
	},
}

func signalStepGroup(signal syscall.Signal) func(*testing.T, *ciStep) {
	return func(t *testing.T, s *ciStep) {
		t.Helper()
		if err := syscall.Kill(-s.Process.Pid, signal); err != nil {
			t.Error(err)
		}
	}
}

// signalByCookie sends SIGTERM to every process that has the cookie of this build in its environment.
func signalByCookie(t *testing.T, s *ciStep) {
	t.Helper()
	cookie := "JENKINS_SERVER_COOKIE=" + filepath.Base(s.folder) + "\x00"
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		pid, bad := strconv.Atoi(entry.Name())
		if err == nil && bad == nil && strings.Contains(string(environment), cookie) {
			_ = syscall.Kill(pid, syscall.SIGTERM) // one that has ended meanwhile is not an error
		}
	}
}

// TestCIRecipes plays the recipes of docs/ci.md as the runners of their systems do, and cancels them.
func TestCIRecipes(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/ci.yaml", 0, ""}})
	for name, runner := range ciRunners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runner.startStep(t, f)
			lease := s.leaseID(t, f)
			runner.cancel(t, s)
			s.awaitEnd(t)
			awaitOutput(t, f, "allocation show "+lease, runner.ends)
			for i, pid := range s.pids {
				if i > 0 && runner.leavesOthers {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				awaitTrue(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid) })
			}
		})
	}
}

func (r ciRunner) recipe(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+r.section+"\n")
	_, block, hasBlock := strings.Cut(section, "\n```")
	command := regexp.MustCompile(`(exec )?quorate lease run [^'\n]*`).FindString(block)
	if !found || !hasBlock || command == "" {
		t.Fatalf("docs/ci.md has no recipe for %s", r.section)
	}
	return command
}

// startStep starts the recipe in a folder with tests that never end by themselves, and waits until they run.
func (r ciRunner) startStep(t *testing.T, f serverFlags) *ciStep {
	t.Helper()
	s := &ciStep{folder: t.TempDir()}
	files := map[string]string{
		"step.sh": r.recipe(t) + "\n",
		"run-tests.sh": "#!/bin/sh\n" + r.stubborn + `
sleep 600 &
echo $! > child
setsid sh -c 'echo $$ > daemon; exec sleep 600' >/dev/null 2>&1 &
while ! test -s daemon; do sleep 0.02; done
echo $$ > tests
while :; do sleep 1; done
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary, filepath.Join(s.folder, "quorate")); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(r.shell[0], append(r.shell[1:len(r.shell):len(r.shell)], "step.sh")...)
	run.Dir, run.SysProcAttr = s.folder, &syscall.SysProcAttr{Setpgid: r.ownGroup}
	run.Env = append(run.Env, "QUORATE_SERVER="+f.baseURL(), "PATH="+s.folder+":"+os.Getenv("PATH"),
		"GITHUB_ACTIONS=", "GITEA_ACTIONS=", "GITLAB_CI=", "JENKINS_URL=", "BUILDKITE=") // this may be a job itself
	for _, variable := range r.environment {
		run.Env = append(run.Env, strings.ReplaceAll(variable, "durable-4711", filepath.Base(s.folder)))
	}
	s.process = startCommand(t, run)
	for _, name := range []string{"tests", "child", "daemon"} {
		s.pids = append(s.pids, awaitPID(t, filepath.Join(s.folder, name)))
	}
	return s
}

func awaitPID(t *testing.T, file string) (pid int) {
	t.Helper()
	awaitTrue(t, func() bool {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return pid
}

// leaseID returns the id of the lease of the step, which its message names by the fence, and checks that it shows the
// job.
func (s *ciStep) leaseID(t *testing.T, f serverFlags) string {
	t.Helper()
	var said []string
	awaitTrue(t, func() bool {
		said = regexp.MustCompile(`under fence (\d+)`).FindStringSubmatch(s.stderr.String())
		return said != nil
	})
	var list struct {
		Allocations []struct {
			ID, Fence string
			Labels    map[string]string
		}
	}
	shown := runCommand(t, "lease", "list", "-o", "json", "--server", f.baseURL())
	if err := json.Unmarshal([]byte(shown.stdout), &list); err != nil {
		t.Fatal(err, shown)
	}
	for _, a := range list.Allocations {
		if a.Fence == said[1] {
			if job := fmt.Sprint(a.Labels["ci-job"], " by ", a.Labels["ci-user"]); job != "unit by kim" {
				t.Errorf("the lease shows the job %q", job)
			}
			return a.ID
		}
	}
	t.Fatalf("no lease has the fence %s\n%s", said[1], shown.stdout)
	return ""
}
