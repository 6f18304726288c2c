package compat_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/boskos"
	"github.com/quorate/quorate/compat/keystone"
	"github.com/quorate/quorate/compat/quotamanager"
	"github.com/quorate/quorate/compat/zuul"
	"github.com/quorate/quorate/internal/manifest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// TestGoldenConversions compares the result of each converter for its samples, with the notes, with a reviewed
// manifest.
func TestGoldenConversions(t *testing.T) {
	leniently := func(data []byte) (*compat.Conversion, error) {
		return quotamanager.Convert(data, quotamanager.Options{Lenient: true})
	}
	strictly := func(data []byte) (*compat.Conversion, error) {
		return quotamanager.Convert(data, quotamanager.Options{})
	}
	for _, test := range []struct {
		sample  string
		convert func(data []byte) (*compat.Conversion, error)
	}{
		{"../examples/zuul/nodepool.yaml", zuul.Convert},
		{"zuul/testdata/names.yaml", zuul.Convert},
		{"zuul/testdata/none.yaml", zuul.Convert},
		{"../examples/keystone/limits.json", keystone.Convert},
		{"keystone/testdata/flat.json", keystone.Convert},
		{"keystone/testdata/names.json", keystone.Convert},
		{"../examples/quota-manager/forest.json", strictly},
		{"quotamanager/testdata/readme.json", strictly}, // as printed in the project's README, with its comma too many
		{"quotamanager/testdata/names.json", strictly},
		{"quotamanager/testdata/faults.json", leniently},
		{"../examples/boskos/boskos.yaml", boskos.Convert},
		{"boskos/testdata/boskos.yaml", boskos.Convert},
		{"boskos/testdata/tenants.yaml", boskos.Convert},
	} {
		t.Run(test.sample, func(t *testing.T) {
			data, err := os.ReadFile(test.sample)
			if err != nil {
				t.Fatal(err)
			}
			c, err := test.convert(data)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, goldenOf(test.sample), textOf(t, c))
		})
	}
}

func goldenOf(sample string) string {
	base := strings.TrimSuffix(filepath.Base(sample), filepath.Ext(sample)) + ".golden.yaml"
	if folder, found := strings.CutPrefix(filepath.Dir(sample), "../examples/"); found {
		return filepath.Join("testdata", folder+"-"+base)
	}
	return filepath.Join(filepath.Dir(sample), base)
}

// textOf writes notes as comments.
func textOf(t *testing.T, c *compat.Conversion) string {
	t.Helper()
	var text strings.Builder
	for _, note := range c.Notes {
		text.WriteString("# " + note + "\n")
	}
	formatted, err := manifest.Format(&manifest.Manifest{Trees: c.Trees})
	if err != nil {
		t.Fatal(err)
	}
	text.Write(formatted)
	return text.String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
