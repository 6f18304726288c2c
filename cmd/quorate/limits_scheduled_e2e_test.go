package main_test

import (
	"strings"
	"testing"
	"time"
)

const scheduledTree = `trees:
  lab:
    policy: strict
    resources: {cores: {unit: count}, ram: {unit: bytes}}
    limits: {cores: 100, ram: 1Ti}
    nodes:
      a: {limits: {cores: 10, ram: 64Gi}}
      b: {limits: {cores: 50}}
`

func awaitCivilTime(t *testing.T, f serverFlags, flags ...string) {
	t.Helper()
	args := append([]string{"schedule", "list", "-o", "json", "--server", f.baseURL()}, flags...)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if strings.Contains(runCommand(t, args...).stdout, "civilAt") {
			return
		}
	}
	t.Fatal("the cluster has not agreed on civil time")
}

// TestScheduledLimitsOverARealServer: a limit is scheduled and shown, begins and ends by itself, another one is
// cancelled, and what a policy forbids is refused in advance.
func TestScheduledLimitsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	applyText(t, f, scheduledTree)
	awaitCivilTime(t, f)
	playSteps(t, f, []step{
		{"limit set lab:a cores=51 --until 2100-01-01T00:00:00Z --actor ann", 3, "add up to 101"},
		{
			"limit set lab:a ram=cap:32Gi cores=-5 --id help --until 2100-01-01T00:00:00Z --actor eve", 0,
			"until 2100-01-01T00:00:00Z, in force",
		},
		{"limit show lab:a", 0, "scheduled: help  lab:a  cores=-5 ram=cap:32Gi"},
		{"limit show lab:a", 0, "IN FORCE"},
		{"limit show lab:a -o json", 0, `"inForce": "34359738368"`},
		{"limit show lab:b", 0, "USED  OVER\n"},
		{"allocate --id nine --at lab:a --amount cores=9", 3, "denied"},
		{"schedule delete help --actor eve", 0, "cancelled: help  lab:a"},
		{"schedule delete help --actor eve", 1, "it may have ended"},
		{"schedule list lab:b -o json", 0, "civilAt"},
	})
	const begin, length = 15 * time.Second, 20 * time.Second // the commands until then take a while on a busy machine
	from := time.Now().UTC().Add(begin).Truncate(time.Second)
	window := " --begin " + from.Format(time.RFC3339) + " --until " + from.Add(length).Format(time.RFC3339) +
		" --actor ann"
	playSteps(t, f, []step{
		{"limit set lab:a cores=20 --id soon --dry-run" + window, 0, "would be scheduled: soon  lab:a  cores=20 from"},
		{"limit set lab:a cores=20 --id soon --reason repairs" + window, 0, "scheduled: soon  lab:a  cores=20 from"},
		{"limit set lab:a cores=20 --id soon --reason repairs" + window, 0, "is scheduled already"},
		{"limit set lab:a cores=21 --id soon --reason repairs" + window, 5, "exists with other content"},
		{"schedule list lab", 0, "repairs"},
	})
	awaitOutput(t, f, "schedule list lab:a", "yes")
	playSteps(t, f, []step{{"allocate --id twenty --at lab:a --amount cores=15", 0, "granted"}})
	awaitOutput(t, f, "event list --kind limit-ended --id soon", "system/calendar")
	playSteps(t, f, []step{
		{"event list --kind limit-ending --at lab:a", 0, "then over: lab:a cores, used 15 of 10"},
		{"usage lab", 0, "5 over"},
		{"revision list --limit 1", 0, "revision"},
	})
}

func awaitOutput(t *testing.T, f serverFlags, command, want string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		last = runCommand(t, append(strings.Fields(command), "--server", f.baseURL())...).stdout
		if strings.Contains(last, want) {
			return
		}
	}
	t.Fatalf("%s does not print %q but\n%s", command, want, last)
}

// TestRecurringLimitsOverARealServer: a rule is scheduled, repeated, shown with its windows and cancelled, and one
// that is wrong or that a policy forbids is refused.
func TestRecurringLimitsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	applyText(t, f, scheduledTree)
	awaitCivilTime(t, f)
	const nights = "weekdays 18:00-08:00 Europe/Zurich"
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--every", "weekdays 18:00", "cores=20"}, 2, `every: "18:00" are not times: write HH:MM-HH:MM`},
		{[]string{"--every", "daily 18:00-08:00 Europe/Zuerich", "cores=20"}, 2, "is not a time zone"},
		{[]string{"--every", "daily 18:00-08:00 localtime", "cores=20"}, 2, `"localtime" is not a time zone`},
		{[]string{"--every", "daily 18:00-08:00 right/Europe/Zurich", "cores=20"}, 2, "is not a time zone"},
		{[]string{"--every", nights, "cores=51"}, 3, "add up to 101"},
		{
			[]string{"--every", nights, "cores=20", "--until", "2030-01-01T00:00:00Z"},
			0,
			"scheduled: night  lab:a  cores=20 every " + nights + " until 2030-01-01T00:00:00Z, next from",
		},
		{[]string{"--every", nights, "cores=20", "--until", "2030-01-01T00:00:00Z"}, 0, "is scheduled already"},
		{[]string{"--every", nights, "cores=20", "--until", "2031-01-01T00:00:00Z"}, 5, "exists with other content"},
	} {
		r := runCommand(t,
			append([]string{"limit", "set", "lab:a", "--id", "night", "--server", f.baseURL()}, step.args...)...)
		if r.code != step.code || !strings.Contains(r.stdout+r.stderr, step.want) {
			t.Errorf("%q: exit %d\n%s%s", step.args, r.code, r.stdout, r.stderr)
		}
	}
	playSteps(t, f, []step{
		{"schedule list lab", 0, nights},
		{"limit show lab:a", 0, "scheduled: night  lab:a  cores=20 every " + nights},
		{"schedule list lab:a -o json", 0, "\"windows\""},
		{"event list --kind limit-scheduled", 0, nights},
		{"schedule delete night", 0, "cancelled: night"},
		{"limit set lab:a cores=20", 0, "revision"},
	})
}
