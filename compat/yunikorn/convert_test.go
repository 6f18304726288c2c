package yunikorn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/yunikorn"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/convert/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			conversion, err := yunikorn.Convert(text)
			if err != nil {
				t.Fatal(err)
			}
			applicable(t, conversion)
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", shown(t, conversion))
		})
	}
}

// shown writes the notes, then the trees.
func shown(t *testing.T, c *compat.Conversion) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	for _, tree := range c.Trees {
		text, err := protojson.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&b, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (write it anew with -args -rewrite); got\n%s", file, got)
	}
}

// applicable checks trees against the field rules of the API and against the rules of whole trees.
func applicable(t *testing.T, c *compat.Conversion) {
	t.Helper()
	if len(c.Trees) == 0 {
		return
	}
	if err := protovalidate.Validate(&quoratev1.ApplyTreesRequest{Trees: c.Trees}); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, tree := range c.Trees {
		if names[tree.GetName()] {
			t.Errorf("two trees %q", tree.GetName())
		}
		names[tree.GetName()] = true
		nodes := map[string]bool{"": true}
		for _, node := range tree.GetNodes() {
			parent := node.GetPath()[:max(0, strings.LastIndex(node.GetPath(), "/"))]
			if nodes[node.GetPath()] || !nodes[parent] {
				t.Errorf("node %q is there twice, or its parent is not there before it", node.GetPath())
			}
			nodes[node.GetPath()] = true
		}
	}
}

// TestConvertRefusals: configurations that YuniKorn accepts but that no tree can represent are refused.
func TestConvertRefusals(t *testing.T) {
	long := strings.Repeat("a", 63)
	tests := rules{
		"63 letters":            {inRoot("{name: " + long + "}"), ""},
		"64 letters":            {inRoot("{name: " + long + "a}"), ""},
		"60 letters and a sign": {inRoot(`{name: "` + long[:60] + `:"}`), ""},
		"61 letters and a sign": {inRoot(`{name: "` + long[:61] + `:"}`), ""},
		"16 levels":             {inRoot(nested(16)), ""},
		"17 levels":             {inRoot(nested(17)), "convert-queue"},
		"512 types":             {onRoot(manyTypes(255, "t") + ", " + manyTypes(255, "u")), ""},
		"513 types":             {onRoot(manyTypes(255, "t") + ", " + manyTypes(256, "u")), "convert-resource"},
		"a strange type":        {onRoot(`{users: [sue], maxresources: {"a b": 1}}`), "convert-resource"},
		"a long partition":      {partitions("{name: " + long + ", queues: []}"), ""},
		"a longer partition":    {partitions("{name: " + long + "a, queues: []}"), ""},
		"names that could meet": {partitions(`{name: "a b", queues: []}, {name: "a+20b", queues: []}`), ""},
		"too many partitions":   {partitions(repeated(101, "{name: p%d, queues: []}")), "convert-partition"},
		"1,000 names":           {onRoot("{users: [" + repeated(1000, "u%d") + "], maxapplications: 1}"), ""},
		"1,001 names": {
			onRoot("{users: [" + repeated(1001, "u%d") + "], maxapplications: 1}"),
			"convert-limit",
		},
		"1,001 limits": {onRoot(repeated(1001, "{users: [u%d], maxapplications: 1}")), "convert-limit"},
		"a long name": {
			onRoot("{users: [" + strings.Repeat("u", 257) + "], maxapplications: 1}"),
			"convert-limit",
		},
		"20,000 queues":  {inRoot(repeated(20000, "{name: q%d}")), "convert-queue"},
		"an invalid one": {inRoot("{name: a.b}"), "queue-name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conversion, err := yunikorn.Convert([]byte(test.text))
			var problems yunikorn.ConfigErrors
			switch {
			case err == nil && test.want == "":
				applicable(t, conversion)
			case !errors.As(err, &problems) || problems[0].Rule != test.want:
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestConvertStrictly(t *testing.T) {
	if _, err := yunikorn.Convert([]byte(onRoot("{users: [sue], maxapplications: 2.9}")),
		yunikorn.Strict()); err == nil {
		t.Error("converted")
	}
}

// TestConvertCounts registers types that no limit names, in every partition.
func TestConvertCounts(t *testing.T) {
	text := []byte(partitions("{name: a, queues: []}, {name: b, queues: []}"))
	conversion, err := yunikorn.Convert(text, yunikorn.Count("nvidia.com/gpu", "vcore"), yunikorn.Count("tape"))
	if err != nil {
		t.Fatal(err)
	}
	applicable(t, conversion)
	const all = "memory UNIT_BYTES nvidia.com/gpu UNIT_COUNT pods UNIT_COUNT tape UNIT_COUNT vcore UNIT_MILLI "
	for _, tree := range conversion.Trees {
		got := ""
		for _, r := range tree.GetResources() {
			got += r.GetName() + " " + r.GetUnit().String() + " "
		}
		if got != all {
			t.Errorf("%s registers %s, want %s", tree.GetName(), got, all)
		}
	}
	want := `"a b" cannot be counted: 1 to 63 letters, digits and _ . / -, beginning with a letter, digit or _ ` +
		`[convert-resource]`
	if _, err := yunikorn.Convert(text, yunikorn.Count("tape", "a b")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzConvert expects no panic, and that every converted configuration is valid and gives trees that the API accepts.
func FuzzConvert(f *testing.F) {
	for _, pattern := range []string{"testdata/cases/*.yaml", "testdata/convert/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(partitions(otherKeys)))
	f.Add([]byte(onRoot("{limit: !!binary gIGC, users: [sue], maxapplications: 1}")))
	f.Fuzz(func(t *testing.T, text []byte) {
		conversion, err := yunikorn.Convert(text)
		if err != nil {
			return
		}
		if err := yunikorn.Validate(text); err != nil {
			t.Fatal(err)
		}
		applicable(t, conversion)
	})
}
