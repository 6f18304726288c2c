// Command licences writes the licences and notices of everything that the binary contains, for those who pass it on:
//
//	go run ./internal/licences -o deploy/licences.txt
//
// It takes the Go modules that any of the released systems links, and the packages that the dashboard bundles, from the
// module cache and web/ui/node_modules.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// systems are those that binaries are released for.
var systems = []string{"linux", "darwin", "windows"}

// textName matches the files that must be passed on.
var textName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

type component struct {
	name, version, folder string
	declared              string // the licence that its package names; empty if it must have the text
}

// textElsewhere says where the text of a declared licence is, for packages that are published without it.
var textElsewhere = map[string]string{
	"Apache-2.0": "The text of the Apache License 2.0 is in the file LICENSE of Quorate.",
	"(Apache-2.0 AND BSD-3-Clause)": "The text of the Apache License 2.0 is in the file LICENSE of Quorate; that of the " +
		"BSD licence, with the copyright of Google, is that of google.golang.org/protobuf.",
}

func main() {
	out := flag.String("o", "deploy/licences.txt", "file to write")
	list := flag.Bool("list", false, "list the components instead, one in each line, without their texts")
	flag.Parse()
	if err := run(context.Background(), *out, *list); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, list bool) error {
	all, err := components(ctx)
	if err != nil {
		return err
	}
	if list {
		for _, c := range all {
			fmt.Println(c.title())
		}
		return nil
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "Licences and notices of what the binary of Quorate contains. NOTICE says more about some.")
	for _, c := range all {
		if err := c.writeTexts(&text); err != nil {
			return err
		}
	}
	return os.WriteFile(out, text.Bytes(), 0o644) //nolint:gosec // licences are public
}

func components(ctx context.Context) ([]component, error) {
	modules, err := linkedModules(ctx)
	if err != nil {
		return nil, err
	}
	packages, err := bundledPackages("web/ui")
	return append(append(modules, packages...), font), err
}

// font is that of the dashboard.
var font = component{name: "Inter", version: "4", folder: "web/ui/src/fonts"}

func (c component) title() string { return strings.TrimSpace(c.name + " " + c.version) }

// ownClient is a module of this repository, and has its licence.
const ownClient = "github.com/quorate/quorate/client"

// linkedModules covers all systems that the binary is built for, and Go itself.
func linkedModules(ctx context.Context) ([]component, error) {
	found := map[string]component{}
	for _, system := range systems {
		command := exec.CommandContext(ctx, "go", "list", "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/quorate")
		command.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
		command.Stderr = os.Stderr
		said, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		for line := range strings.Lines(string(said)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) == 3 && f[0] != ownClient {
				found[f[0]] = component{name: f[0], version: f[1], folder: f[2]}
			}
		}
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	modules := slices.SortedFunc(maps.Values(found), byName)
	standard := component{name: "The Go standard library", folder: strings.TrimSpace(string(root))}
	return append([]component{standard}, modules...), nil
}

func byName(a, b component) int { return cmp.Compare(a.name, b.name) }

// bundledPackages returns the packages of the dashboard that end in its scripts: all that its lock file does not mark
// as needed for building only.
func bundledPackages(folder string) ([]component, error) {
	text, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
			License string `json:"license"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("read package-lock.json: %w", err)
	}
	var all []component
	for path, p := range lock.Packages {
		if path != "" && !p.Dev {
			all = append(all, component{
				strings.TrimPrefix(path, "node_modules/"), p.Version, filepath.Join(folder, path), p.License,
			})
		}
	}
	slices.SortFunc(all, byName)
	return all, nil
}

// writeTexts requires that each component has a text.
func (c component) writeTexts(w *bytes.Buffer) error {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return fmt.Errorf("%s is not there; are its files downloaded (go mod download, make ui)? %w", c.name, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !textName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.folder, e.Name()))
		if err != nil {
			return err
		}
		found = true
		c.writeSection(w, e.Name(), string(text))
	}
	if elsewhere := textElsewhere[c.declared]; !found && elsewhere != "" {
		c.writeSection(w, c.declared, elsewhere)
		return nil
	}
	if !found {
		return errors.New(c.name + " has no licence among its files")
	}
	return nil
}

func (c component) writeSection(w *bytes.Buffer, title, text string) {
	fmt.Fprintf(w, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), c.title(), title,
		strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")))
}
