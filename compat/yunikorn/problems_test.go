package yunikorn_test

import (
	"errors"
	"os"
	"testing"

	"github.com/quorate/quorate/compat/yunikorn"
)

// TestProblems reads all sentences aloud, in the order in which the original would meet them.
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

// TestManyProblems shows that only so many are kept.
func TestManyProblems(t *testing.T) {
	var problems yunikorn.ConfigErrors
	err := yunikorn.Validate([]byte(inRoot(repeated(300, "{name: a.%d}"))))
	if !errors.As(err, &problems) || len(problems) != 200 {
		t.Errorf("%d problems", len(problems))
	}
}
