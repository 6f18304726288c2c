package server

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/manifest"
)

const (
	// ConfigFlag is the flag that names the configuration file.
	ConfigFlag = "config"
	envPrefix  = "QUORATE_SERVER_"
)

// EnvironmentVariable is the environment variable of a flag or setting: QUORATE_SERVER_DATA_DIR for data-dir.
func EnvironmentVariable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// EnvironmentVariables are the names that a server reads.
func EnvironmentVariables() []string {
	names := []string{EnvironmentVariable(ConfigFlag)}
	for _, s := range settingFields() {
		names = append(names, EnvironmentVariable(s.key))
	}
	return names
}

// AddFlags adds a flag for each setting, and [ConfigFlag].
func AddFlags(f *pflag.FlagSet) {
	f.String(ConfigFlag, "", "YAML file with the same settings; variables QUORATE_SERVER_… and flags override it")
	for _, s := range settingFields() {
		s.addFlag(f)
	}
}

// addFlag adds a flag of the field's type. It panics if flags cannot have that type or the default does not match it,
// which is a mistake in the declaration of Settings.
func (s setting) addFlag(f *pflag.FlagSet) {
	var fault error
	switch reflect.New(s.field.Type).Interface().(type) {
	case *string:
		f.String(s.key, "", s.help)
	case *bool:
		f.Bool(s.key, false, s.help)
	case *int:
		f.Int(s.key, 0, s.help)
	case *uint64:
		f.Uint64(s.key, 0, s.help)
	case *float64:
		f.Float64(s.key, 0, s.help)
	case *time.Duration:
		f.Var(new(spanFlag), s.key, s.help)
	case *[]string:
		f.StringSlice(s.key, nil, s.help)
	default:
		fault = fmt.Errorf("no flag can be of type %v", s.field.Type)
	}
	if fault == nil && s.byDefault != "" {
		flag := f.Lookup(s.key)
		flag.DefValue = s.byDefault
		fault = flag.Value.Set(s.byDefault)
	}
	if fault != nil {
		panic(fmt.Sprintf("the setting %s: %v", s.key, fault))
	}
}

// spanFlag is a flag with a time, in days too. It is of the type of pflag's durations for those that read it.
type spanFlag time.Duration

// Set parses a time.
func (f *spanFlag) Set(text string) error {
	d, err := manifest.ParseDuration(text)
	if err == nil {
		*f = spanFlag(d)
	}
	return err //nolint:wrapcheck // callers word it
}

// String writes the time as package time reads it.
func (f *spanFlag) String() string { return time.Duration(*f).String() }

// Type is that of pflag's durations.
func (*spanFlag) Type() string { return "duration" }

func (s setting) isTime() bool { return s.field.Type == reflect.TypeFor[time.Duration]() }

func (s setting) isList() bool { return s.field.Type.Kind() == reflect.Slice }

// DefaultSettings are the defaults. They are not valid: a node needs at least an id and a data folder.
func DefaultSettings() Settings {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	s, _ := Load(flags, nil) // the error names what the caller fills in
	return s
}
