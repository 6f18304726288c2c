package zuul

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/internal/manifest"
)

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestConvertNothing(t *testing.T) {
	c, err := Convert([]byte("tenant-resource-limits: []\n"))
	if err != nil || len(c.Trees) != 1 || len(c.Trees[0].GetNodes()) != 0 {
		t.Errorf("Convert of no limits answers %v, %v; want a tree without nodes", c, err)
	}
}

func TestConvertRefuses(t *testing.T) {
	limits := func(lines string) string { return "tenant-resource-limits:\n" + lines }
	tests := map[string]struct {
		text string
		want string
	}{
		"no text":       {"", "tenant-resource-limits is missing: the file is empty"},
		"no section":    {"zookeeper-servers: []\n", "tenant-resource-limits is missing: the file has zookeeper-servers"},
		"no YAML":       {"a: [", "line 1, column 4: this [ is never closed"},
		"no map":        {"- a\n", "line 1: the configuration is not a map"},
		"two documents": {"a: b\n---\nc: d\n", "line 2, column 1: a second document begins"},
		"the section twice": {
			limits("  []\n") + limits("  []\n"),
			`line 3: the configuration: "tenant-resource-limits" is given twice; the first is in line 1`,
		},
		"no list":        {limits("  tenant-name: a\n"), "line 2: tenant-resource-limits is not a list"},
		"no entry":       {limits("  - a\n"), "line 2: an entry of tenant-resource-limits is not a map"},
		"an empty entry": {limits("  - {}\n"), "line 2: an entry of tenant-resource-limits has no tenant-name"},
		"no name": {
			limits("  - max-servers: 1\n"),
			"line 2: an entry of tenant-resource-limits has no tenant-name",
		},
		"a number":      {limits("  - tenant-name: 123\n"), "line 2: tenant-name is not a text: put it in quotes"},
		"a boolean":     {limits("  - tenant-name: true\n"), "line 2: tenant-name is not a text"},
		"an empty name": {limits("  - tenant-name: ''\n"), "line 2: tenant-name is not a text"},
		"a tenant twice": {
			limits("  - tenant-name: a\n  - tenant-name: a\n"),
			`line 3: tenant "a" is given twice; the first is in line 2`,
		},
		"a key twice": {
			limits("  - tenant-name: a\n    max-ram: 1\n    max-ram: 2\n"),
			`line 4: an entry of tenant-resource-limits: "max-ram" is given twice`,
		},
		"a negative": {
			limits("  - tenant-name: a\n    max-cores: -1\n"),
			`line 3: max-cores of tenant "a" is "-1"; it must be a whole number`,
		},
		"a fraction": {
			limits("  - tenant-name: a\n    max-cores: 1.5\n"),
			`is "1.5"; it must be a whole number`,
		},
		"a word": {
			limits("  - tenant-name: a\n    max-cores: many\n"),
			`is "many"; it must be a whole number`,
		},
		"nothing": {
			limits("  - tenant-name: a\n    max-cores:\n"),
			`line 3: max-cores of tenant "a" is ""; it must be`,
		},
		"a list": {
			limits("  - tenant-name: a\n    max-cores: [1]\n"),
			`line 3: max-cores of tenant "a" is ""; it must be`,
		},
		"too much memory": {
			limits("  - tenant-name: a\n    max-ram: 4398046511104\n"),
			`max-ram of tenant "a" is too large: the maximum is 4398046511103`,
		},
		"too many": {
			limits("  - tenant-name: a\n    max-cores: 4611686018427387904\n"),
			`must be a whole number from 0 to 4611686018427387903`,
		},
		"our own word": {
			limits("  - tenant-name: a\n    cores: 5\n"),
			`line 3: "cores" of tenant "a": write max-cores`,
		},
		"a bad resource": {
			limits("  - tenant-name: a\n    my own: 5\n"),
			`line 3: "my own" of tenant "a" is not a valid resource name`,
		},
		"a merge": {
			"x: &x {max-cores: 1}\n" + limits("  - tenant-name: a\n    <<: *x\n"),
			"line 4: an entry of tenant-resource-limits: merging (<<) is not read",
		},
		"a key of keys": {
			limits("  - tenant-name: a\n    [b]: 1\n"),
			"line 3: an entry of tenant-resource-limits: a key is a word",
		},
		"many aliases": {
			"x: &x {}\n" + limits(strings.Repeat("  - *x\n", 1001)),
			"line 1003, column 5: the text has more than 1000 aliases",
		},
		"too long a text": {strings.Repeat("#", compat.MaxSize+1), "up to 4194304 are read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Convert([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Convert answers %v, %v; want an error that says %q", c, err, test.want)
			}
		})
	}
}

// TestAllProblemsAtOnce: all problems of a file are reported together.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Convert([]byte(
		"tenant-resource-limits:\n  - max-ram: 1\n  - tenant-name: a\n    max-ram: x\n    max-cores: y\n"))
	want := compat.Problems{
		"line 2: an entry of tenant-resource-limits has no tenant-name",
		`line 4: max-ram of tenant "a" is "x"; it must be a whole number from 0 to 4611686018427387903`,
		`line 5: max-cores of tenant "a" is "y"; it must be a whole number from 0 to 4611686018427387903`,
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// FuzzConvert searches for files that crash the converter, or are converted to trees that cannot be written as a
// manifest.
func FuzzConvert(f *testing.F) {
	for _, file := range []string{"../../examples/zuul/nodepool.yaml", "testdata/names.yaml", "testdata/none.yaml"} {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Convert(data)
		if err != nil {
			return
		}
		if _, err := manifest.Format(&manifest.Manifest{Trees: c.Trees}); err != nil {
			t.Fatalf("%v\n%v", err, c.Trees)
		}
	})
}
