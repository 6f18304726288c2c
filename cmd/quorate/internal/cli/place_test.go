package cli

import "testing"

func TestIDsArePastedSafely(t *testing.T) {
	for id, want := range map[string]string{
		"job-1": "job-1", "a/b:c@d=1": "a/b:c@d=1", "$(reboot)": "'$(reboot)'", "a;b": "'a;b'", "it's": `'it'\''s'`,
		"-rf": "-- '-rf'",
		"~":   "'~'", "a*": "'a*'", "`x`": "'`x`'", "a=-b": "a=-b",
	} {
		if got := ShellWord(id); got != want {
			t.Errorf("%s is written %s, want %s", id, got, want)
		}
	}
}
