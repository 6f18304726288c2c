package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// loadSettings reads the settings from the flags' defaults, the file, the environment and the flags, in this order.
func loadSettings(flags *pflag.FlagSet, environ []string) (settings, error) {
	path, err := configPath(flags, environ)
	if err != nil {
		return settings{}, err
	}
	k := koanf.New(".")
	if path != "" {
		if err := loadFile(k, path); err != nil {
			return settings{}, err
		}
	}
	known := keys()
	fromEnv := env.Provider(".", env.Opt{
		Prefix: envPrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return fromEnv(known, name, value) },
	})
	for _, source := range []koanf.Provider{fromEnv, posflag.Provider(flags, ".", k)} {
		if err := k.Load(source, nil); err != nil {
			return settings{}, fmt.Errorf("reading the settings: %w", err)
		}
	}
	var s settings
	if err := k.Unmarshal("", &s); err != nil {
		return settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	return s, s.check()
}

// configPath is the file that --config or QUORATE_CONFIG names; empty if there is none.
func configPath(flags *pflag.FlagSet, environ []string) (string, error) {
	path, err := flags.GetString(configFlag)
	if err != nil || path != "" {
		return path, err
	}
	for _, pair := range environ {
		if value, found := strings.CutPrefix(pair, envPrefix+"CONFIG="); found {
			path = value
		}
	}
	return path, nil
}

// loadFile reads a YAML file. A key that does not exist is an error with its place, so that a typo is never ignored.
func loadFile(k *koanf.Koanf, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var typed settings
	if err := yaml.UnmarshalWithOptions(text, &typed, yaml.Strict(), yaml.DisallowUnknownField()); err != nil {
		return yamlError(path, err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return yamlError(path, err)
	}
	return k.Load(confmap.Provider(values, "."), nil)
}

// yamlError puts the place in front, as compilers do.
func yamlError(path string, err error) error {
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		at := located.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, located.GetMessage())
	}
	return fmt.Errorf("%s: %w", path, err)
}

// keys are the names of all settings.
func keys() map[string]setting {
	known := map[string]setting{}
	for _, s := range allSettings() {
		known[s.key] = s
	}
	return known
}

// fromEnv makes QUORATE_DATA_DIR the key data-dir. Other variables with this prefix are for other commands.
func fromEnv(known map[string]setting, name, value string) (string, any) {
	key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
	s, found := known[key]
	switch {
	case !found:
		return "", nil
	case s.isList():
		return key, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
	}
	return key, value
}
