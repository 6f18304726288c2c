package server

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/internal/yamldoc"
)

// Load reads the settings from the defaults of the flags, the configuration file, the environment and the flags, in
// this order; the last one wins. The flags are those of [AddFlags]. It returns an error that names every fault if the
// settings are not valid.
func Load(flags *pflag.FlagSet, environ []string) (Settings, error) {
	s, err := readSettings(flags, environ)
	if err != nil {
		return Settings{}, err
	}
	return s, s.Validate()
}

// readSettings is Load without checks of the values.
func readSettings(flags *pflag.FlagSet, environ []string) (Settings, error) {
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
	if err := readTimes(k); err != nil {
		return Settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	var s Settings
	if err := k.Unmarshal("", &s); err != nil {
		return Settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	return s, nil
}

// readTimes replaces the times of the environment, which may have days, as in 1d12h: package time does not read those.
func readTimes(k *koanf.Koanf) error {
	for _, field := range settingFields() {
		text, isText := k.Get(field.key).(string)
		if !isText || !field.isTime() {
			continue
		}
		d, err := manifest.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: %.64q is not a time: write days, hours, minutes and seconds, such as 7d, 1h30m or 90s",
				field.key, text)
		}
		if err := k.Set(field.key, d); err != nil {
			return err //nolint:wrapcheck // callers say what they were doing
		}
	}
	return nil
}

// writeDaysAsHours rewrites the times of a configuration file that have days, for the same reason.
func writeDaysAsHours(document *yamldoc.Document) {
	known := settingsByKey()
	for key, value := range document.All() {
		if field, isSetting := known[key]; isSetting && field.isTime() {
			if d, err := manifest.ParseDuration(value.Value); err == nil {
				value.Value = d.String()
			}
		}
	}
}

// configFile is empty if neither --config nor QUORATE_SERVER_CONFIG names one.
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
	document, err := decodeYAML(path, text, &typed)
	if err != nil {
		return err
	}
	return k.Load(confmap.Provider(typed.written(document), "."), nil)
}

// written has nil for a key with nothing after it.
func (s Settings) written(document *yamldoc.Document) map[string]any {
	values := map[string]any{}
	known := settingsByKey()
	fields := reflect.ValueOf(s)
	for key, value := range document.All() {
		values[key] = nil
		if !yamldoc.IsNull(value) {
			values[key] = fields.FieldByIndex(known[key].field.Index).Interface()
		}
	}
	return values
}

// maxConfigFile is the most bytes of a YAML file that a server reads.
const maxConfigFile = 1 << 20

// decodeYAML fills a struct from a file, strictly. An error begins with file, line and column, as compilers write it.
func decodeYAML(path string, text []byte, out any) (*yamldoc.Document, error) {
	document, err := yamldoc.Read(text, yamldoc.Rules{Bytes: maxConfigFile, Depth: 100, Values: 1 << 17, Aliases: 1000})
	if err == nil {
		if _, isSettings := out.(*Settings); isSettings {
			writeDaysAsHours(document)
		}
		err = document.Decode(out)
	}
	var at *yamldoc.Error
	switch {
	case err == nil:
		return document, nil
	case errors.As(err, &at) && at.Line > 0:
		return nil, fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, at.Message)
	default:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
}

func settingsByKey() map[string]setting {
	known := map[string]setting{}
	for _, s := range settingFields() {
		known[s.key] = s
	}
	return known
}

// environmentEntry makes QUORATE_SERVER_DATA_DIR the key data-dir. The command line warns of variables with this prefix
// that are not settings: Kubernetes sets some for a service named quorate-server.
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

// ReadPeers reads a file that lists the members of a cluster, YAML or JSON, strictly:
//
//	peers:
//	  - {id: n1, address: 10.0.0.1:7201}
//	  - {id: n4, address: 10.0.0.4:7201, voter: true}
func ReadPeers(path string) ([]host.Peer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("peers: %w; name a file with the new configuration, see quorate cluster recover --help", err)
	}
	var file struct {
		Peers []host.Peer `yaml:"peers"`
	}
	if _, err := decodeYAML(path, text, &file); err != nil {
		return nil, err
	}
	if err := host.CheckPeers(file.Peers); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return file.Peers, nil
}
