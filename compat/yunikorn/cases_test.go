package yunikorn_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

// TestCases compares the verdict, and the first rule that is violated, with the original's.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) < 41 {
		t.Fatalf("found %d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			verdict, rule := judge(t, text)
			if want := remark(text, "expect"); verdict != want {
				t.Errorf("%s, want %s: %s", verdict, want, remark(text, "case"))
			}
			if want := remark(text, "rule"); rule != want {
				t.Errorf("the first rule is %q, want %q", rule, want)
			}
		})
	}
}

func remark(text []byte, key string) string {
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "# "+key+": "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func judge(t *testing.T, text []byte, options ...yunikorn.Option) (verdict, rule string) {
	t.Helper()
	err := yunikorn.Validate(text, options...)
	if err == nil {
		return "accept", ""
	}
	var problems yunikorn.ConfigErrors
	if !errors.As(err, &problems) {
		t.Fatalf("the error is a %T", err)
	}
	return "reject", problems[0].Rule
}
