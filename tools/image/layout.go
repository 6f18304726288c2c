package main

import (
	"fmt"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const configuration = "/etc/quorate/quorate.yaml"

func (b *build) writeLayout(folder, reference string) error {
	common, err := b.commonEntries()
	if err != nil {
		return err
	}
	files, err := newLayer(common, b.time)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, binary := range b.binaries {
		image, err := b.image(files, binary)
		if err != nil {
			return fmt.Errorf("%s: %w", binary.architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: binary.architecture}},
		})
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("replace the layout: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	names := map[string]string{"org.opencontainers.image.ref.name": reference}
	return path.AppendIndex(index, layout.WithAnnotations(names))
}

func (b *build) image(files v1.Layer, program binary) (v1.Image, error) {
	text, err := os.ReadFile(program.file)
	if err != nil {
		return nil, fmt.Errorf("binary: %w", err)
	}
	layer, err := newLayer([]entry{{binaryPath, 0o755, 0, text}}, b.time)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := func(what string) v1.History {
		return v1.History{Created: v1.Time{Time: b.time}, CreatedBy: "tools/image: " + what}
	}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: files, History: history("certificates, licences, user, folders")},
		mutate.Addendum{Layer: layer, History: history("quorate")})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", program.architecture, v1.Time{Time: b.time}
	config.Config = b.config()
	return mutate.ConfigFile(image, config)
}

func (b *build) config() v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/" + binaryPath},
		Cmd:        []string{"server", "run", "--config", configuration},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Volumes:    map[string]struct{}{"/" + dataPath[:len(dataPath)-1]: {}},
		ExposedPorts: map[string]struct{}{
			"7101/tcp": {}, "7201/tcp": {}, "7301/tcp": {}, "7301/udp": {},
		},
		// Kubernetes and tools that keep to OCI ignore it.
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/" + binaryPath, "server", "probe", "--config", configuration},
			Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
		StopSignal: "SIGTERM",
		Labels:     b.labels(),
	}
}

// labels are those of the OCI's specification of images.
func (b *build) labels() map[string]string {
	labels := map[string]string{
		"title":       "Quorate",
		"description": "Quota and leases for many schedulers at once: exact, durable, explained",
		"licenses":    "Apache-2.0",
		"source":      "https://github.com/quorate/quorate",
		"url":         "https://github.com/quorate/quorate",
		"version":     b.version,
		"revision":    b.commit,
		"created":     b.time.Format(time.RFC3339),
	}
	keyed := map[string]string{}
	for name, value := range labels {
		keyed["org.opencontainers.image."+name] = value
	}
	return keyed
}
