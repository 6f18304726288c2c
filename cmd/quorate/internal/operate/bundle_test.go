package operate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

// TestABundleStaysInItsFolder: file names come from servers and must not escape the folder of the bundle.
func TestABundleStaysInItsFolder(t *testing.T) {
	var file bytes.Buffer
	b := newBundle(&file, "devel")
	for _, id := range []string{"n1", "..", "a/b"} {
		err := b.putMember(id, &adminv1.GetDiagnosticsResponse{Member: id, Diagnostics: []*adminv1.Diagnostic{
			{Name: "ok.txt", Content: []byte("x")}, {Name: "../../evil", Content: []byte("x")}, {
				Name:    ".rc",
				Content: []byte("x"),
			},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.closeArchive(); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	archive := tar.NewReader(unzipped)
	for header, err := archive.Next(); err == nil; header, err = archive.Next() {
		names = append(names, header.Name)
	}
	if got := strings.Join(names, " "); got != "quorate-debug/n1/ok.txt quorate-debug/manifest.json" {
		t.Errorf("the archive has %s", got)
	}
	if len(b.manifest.Members[0].Missing) != 2 || len(b.manifest.Members[1].Missing) != 3 ||
		b.manifest.countMembers() != 1 {
		t.Errorf("the manifest says %+v", b.manifest)
	}
}
