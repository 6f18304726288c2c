package compat

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"tenant-1":        "tenant-1",
		"a.b@c_d-E9":      "a.b@c_d-E9",
		"team one":        "team+20one",
		"a+b":             "a+2Bb",
		"gerrit/nova":     "gerrit+2Fnova",
		"zürich":          "z+C3+BCrich",
		"-x":              "_+2Dx",
		" x":              "_+20x",
		"_ x":             "_+5F+20x",
		"_x":              "_x",
		"_-x":             "_-x",
		"é":               "_+C3+A9",
		"_+20x":           "_+5F+2B20x",
		"9":               "9",
		"trailing blank ": "trailing+20blank+20",
	} {
		if got, err := Name(text); err != nil || got != want {
			t.Errorf("Name(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := Name(""); err == nil {
		t.Errorf("nothing is the name %q", got)
	}
}

func TestLongNames(t *testing.T) {
	n := strings.Repeat("n", 64)
	for text, want := range map[string]string{
		n[1:]:                    n[1:],
		n:                        n[:45] + "++ce068a195ab380a8",
		n[1:] + "é":              n[:45] + "++be51892bb7a263ac",
		strings.Repeat(" ", 20):  "_" + strings.Repeat("+20", 20),
		strings.Repeat(" ", 21):  "_" + strings.Repeat("+20", 14) + "+2++e3e7a7180f67f372",
		strings.Repeat("é", 900): "_" + strings.Repeat("+C3+A9", 7) + "+C++6a062af8cbc34be1",
	} {
		if got, err := Name(text); err != nil || got != want {
			t.Errorf("Name(%.80q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestNamesAreValidAndDifferent draws texts of few characters, short ones and some around the longest name, so that
// collisions would be found.
func TestNamesAreValidAndDifferent(t *testing.T) {
	end := rapid.StringOfN(rapid.SampledFrom([]rune("_+- 2F05a.")), 1, 6, -1)
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("n", rapid.SampledFrom([]int{0, 0, 45, 57, 60}).Draw(t, "before")) + end.Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		one, other := text.Draw(t, "one"), text.Draw(t, "other")
		first, err := Name(one)
		if err != nil || !IsName(first) {
			t.Fatalf("Name(%q) = %q, %v", one, first, err)
		}
		if second, err := Name(other); err != nil || (first == second) != (one == other) {
			t.Fatalf("%q and %q become %q and %q, %v", one, other, first, second, err)
		}
	})
}

func TestLabel(t *testing.T) {
	long := strings.Repeat("é", 200)
	if got := Label(long); got != strings.Repeat("é", 128) {
		t.Errorf("%d bytes come back", len(got))
	}
	if got := Label("half\xc3"); got != "half" {
		t.Errorf("half a character is there: %q", got)
	}
	if got := Label("a" + long); got != "a"+strings.Repeat("é", 127) {
		t.Errorf("%d bytes come back, and perhaps half a character", len(got))
	}
}

func TestDocuments(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"none": {" \n", "[]"},
		"two":  {"{\"a\": 1}\n[{\"a\": 1}, {\"a\": 2}] ", `[{"a": 1} [{"a": 1}, {"a": 2}]]`},
		"the same key elsewhere": {
			`{"a": {"a": {"b": 1}}, "b": ["a", "a"]}`,
			`[{"a": {"a": {"b": 1}}, "b": ["a", "a"]}]`,
		},
		"a key twice": {
			"{}\n{\"x\": {},\n\"y\": [{\"a\": [],\n\"b\": 1,\n\"a\": 2}]}",
			`line 5: "a" is given twice`,
		},
		"twice after an object":    {`{"a": {"b": 1}, "a": 2}`, `line 1: "a" is given twice`},
		"twice, once as an escape": {`{"a": 1, "\u0061": 2}`, `line 1: "a" is given twice`},
		"no JSON":                  {"{}\n{\n]", "line 3: not JSON"},
		"cut off":                  {"{\n\n", "line 3: not JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			documents, err := Documents([]byte(test.text))
			got := fmt.Sprintf("%s", documents)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("Documents answers %s, want %s", got, test.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	var problems Problems
	if err := problems.Err(); err != nil {
		t.Errorf("no problem is %v", err)
	}
	for i := range 1003 {
		problems.Add("problem %d", i)
	}
	lines := strings.Split(problems.Err().Error(), "\n")
	if len(lines) != 1001 || lines[999] != "problem 999" || lines[1000] != "and 3 more" {
		t.Errorf("want a thousand problems and a count, got:\n%v", problems)
	}
}

func TestBounds(t *testing.T) {
	big := &quoratev1.Tree{Name: "big"}
	for i := range 513 {
		big.Resources = append(big.Resources, &quoratev1.Resource{Name: fmt.Sprint(i)})
	}
	for i := range 20_000 {
		big.Nodes = append(big.Nodes, &quoratev1.Node{Path: fmt.Sprint(i)})
	}
	big.Nodes = append(big.Nodes, &quoratev1.Node{Path: strings.Repeat("n/", 16) + "n"})
	trees := []*quoratev1.Tree{big}
	for range 100 {
		trees = append(trees, &quoratev1.Tree{Name: "small"})
	}
	got := Bounds(trees).Error()
	for _, want := range []string{"101 trees come out", "gets 513 resources", "gets 20001 nodes", "is at depth 17"} {
		if !strings.Contains(got, want) {
			t.Errorf("the bounds do not say %q:\n%s", want, got)
		}
	}
	if found := Bounds(trees[1:]); len(found) > 0 {
		t.Errorf("small trees are too big: %v", found)
	}
}
