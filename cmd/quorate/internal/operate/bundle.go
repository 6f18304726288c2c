package operate

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// bundleFolder is the top folder of the archive.
const bundleFolder = "quorate-debug"

type bundle struct {
	zip      *gzip.Writer
	tar      *tar.Writer
	manifest bundleManifest
}

type bundleManifest struct {
	Collected   time.Time      `json:"collected"`
	By          string         `json:"by"`
	Cluster     string         `json:"cluster"`
	AskedServer string         `json:"askedServer"`
	Members     []bundleMember `json:"members"`
}

type bundleMember struct {
	ID      string          `json:"id"`
	Files   []bundleFile    `json:"files"`
	Missing []bundleMissing `json:"missing"`
}

type bundleFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	// Truncated is set if the server cut the file off.
	Truncated bool `json:"truncated,omitempty"`
}

type bundleMissing struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// wholeMember stands for all files of a member that does not answer.
const wholeMember = "everything"

func newBundle(to io.Writer, version string) *bundle {
	zip := gzip.NewWriter(to)
	return &bundle{zip: zip, tar: tar.NewWriter(zip), manifest: bundleManifest{
		Collected: time.Now().UTC().Truncate(time.Second), By: "quorate " + version, Members: []bundleMember{},
	}}
}

func (m bundleManifest) countMembers() int {
	count := 0
	for _, member := range m.Members {
		if len(member.Files) > 0 {
			count++
		}
	}
	return count
}

func (b *bundle) putMessage(name string, m proto.Message) error {
	text, err := protojson.MarshalOptions{Multiline: true}.Marshal(m)
	if err != nil {
		return err
	}
	return b.putFile(name, text)
}

func (b *bundle) putFile(name string, content []byte) error {
	header := &tar.Header{
		Name: path.Join(bundleFolder, name), Mode: 0o600, Size: int64(len(content)),
		ModTime: b.manifest.Collected, Typeflag: tar.TypeReg,
	}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("writing %s into the archive: %w", name, err)
	}
	if _, err := b.tar.Write(content); err != nil {
		return fmt.Errorf("writing %s into the archive: %w", name, err)
	}
	return nil
}

// fileNames matches names that are accepted from servers; they cannot point outside the folder of the archive.
var fileNames = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

func (b *bundle) putMember(id string, answer *adminv1.GetDiagnosticsResponse, failed error) error {
	member := bundleMember{ID: id, Files: []bundleFile{}, Missing: []bundleMissing{}}
	if failed != nil {
		member.Missing = append(member.Missing, bundleMissing{wholeMember, cli.ErrorText(failed)})
	}
	for _, d := range answer.GetDiagnostics() {
		why := d.GetMissing()
		if !fileNames.MatchString(id) || !fileNames.MatchString(d.GetName()) {
			why = "its name cannot be that of a file"
		}
		if why != "" {
			member.Missing = append(member.Missing, bundleMissing{d.GetName(), why})
			continue
		}
		if err := b.putFile(path.Join(id, d.GetName()), d.GetContent()); err != nil {
			return err
		}
		member.Files = append(member.Files, bundleFile{d.GetName(), len(d.GetContent()), d.GetTruncated()})
	}
	b.manifest.Members = append(b.manifest.Members, member)
	return nil
}

func (b *bundle) closeArchive() error {
	text, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(b.putFile("manifest.json", text), b.tar.Close(), b.zip.Close())
}
