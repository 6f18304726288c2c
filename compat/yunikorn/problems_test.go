package yunikorn_test

import (
	"errors"
	"os"
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

// TestProblems compares the texts of all problems, in the order in which the original would find them, with golden
// files.
func TestProblems(t *testing.T) {
	for _, name := range []string{"rules", "yaml", "strict"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/problems/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			var options []yunikorn.Option
			if name == "strict" {
				if err := yunikorn.Validate(text); err != nil {
					t.Error("only strictly is anything wrong:", err)
				}
				options = append(options, yunikorn.Strict())
			}
			problems := yunikorn.Validate(text, options...)
			if problems == nil {
				t.Fatal("no problem")
			}
			golden(t, "testdata/problems/"+name+".golden", []byte(problems.Error()+"\n"))
		})
	}
}

// TestManyProblems shows that only so many are kept, and that the others are counted.
func TestManyProblems(t *testing.T) {
	for what, entry := range map[string]string{"no names": "{name: a.%d}", "no keys": "{nam: a%d}"} {
		var problems yunikorn.ConfigErrors
		err := yunikorn.Validate([]byte(inRoot(repeated(1300, entry))))
		if !errors.As(err, &problems) || len(problems) != 1001 || problems[1000].Text != "and 300 more problems" {
			t.Errorf("%s: %d problems, %v", what, len(problems), problems[len(problems)-1])
		}
	}
}
