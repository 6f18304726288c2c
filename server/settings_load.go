package server

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

// Load reads the settings from the defaults of the flags, the configuration file, the environment and the flags, in this
// order; the last one wins. The flags are those of [AddFlags]. It returns an error that names every fault if the settings
// are not valid.
func Load(flags *pflag.FlagSet, environ []string) (Settings, error) {
	path, err := configFile(flags, environ)
	if err != nil {
		return Settings{}, err
	}
	k := koanf.New(".")
	if path != "" {
		if err := readConfigFile(k, path); err != nil {
			return Settings{}, err
		}
	}
	known := settingsByKey()
	fromEnv := env.Provider(".", env.Opt{
		Prefix: envPrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return environmentEntry(known, name, value) },
	})
	for _, source := range []koanf.Provider{fromEnv, posflag.Provider(flags, ".", k)} {
		if err := k.Load(source, nil); err != nil {
			return Settings{}, fmt.Errorf("reading the settings: %w", err)
		}
	}
	var s Settings
	if err := k.Unmarshal("", &s); err != nil {
		return Settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	return s, s.Validate()
}

// configFile is the file that --config or QUORATE_CONFIG names; empty if neither does.
func configFile(flags *pflag.FlagSet, environ []string) (string, error) {
	path, err := flags.GetString(ConfigFlag)
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

// readConfigFile reads a YAML file. A key that does not exist is an error with its position, because a typo must not be
// ignored.
func readConfigFile(k *koanf.Koanf, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var typed Settings
	if err := yaml.UnmarshalWithOptions(text, &typed, yaml.Strict(), yaml.DisallowUnknownField()); err != nil {
		return locateYAMLError(path, err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return locateYAMLError(path, err)
	}
	return k.Load(confmap.Provider(values, "."), nil)
}

// locateYAMLError puts file, line and column first, as compilers do.
func locateYAMLError(path string, err error) error {
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		at := located.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, located.GetMessage())
	}
	return fmt.Errorf("%s: %w", path, err)
}

// settingsByKey are all settings by name.
func settingsByKey() map[string]setting {
	known := map[string]setting{}
	for _, s := range settingFields() {
		known[s.key] = s
	}
	return known
}

// environmentEntry makes QUORATE_DATA_DIR the key data-dir. Variables with this prefix that are not settings belong to other
// commands.
func environmentEntry(known map[string]setting, name, value string) (string, any) {
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
