package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const (
	configFlag = "config"
	checkFlag  = "check"
)

// addServerFlags adds a flag for each setting, and those that are about the settings.
func addServerFlags(f *pflag.FlagSet) {
	f.String(configFlag, "", "YAML file with the same settings; environment variables QUORATE_… and flags override it")
	f.Bool(checkFlag, false, "check the settings, say what is wrong with them, and start nothing")
	for _, s := range allSettings() {
		s.addFlag(f)
	}
}

// addFlag makes a flag of the field's type. A default that is none of that type is a mistake in this program.
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
		f.Duration(s.key, 0, s.help)
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

func (s setting) isList() bool { return s.field.Type.Kind() == reflect.Slice }

// defaultSettings are those of a server that is told nothing.
func defaultSettings() settings {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addServerFlags(flags)
	s, _ := loadSettings(flags, nil) // what is missing is for the caller to fill in
	return s
}

// sources is where this process looks for its settings, once at its start and again at each SIGHUP.
func sources(flags *pflag.FlagSet) func() (settings, error) {
	return func() (settings, error) {
		s, err := loadSettings(flags, os.Environ())
		if err != nil {
			return settings{}, usagef("%s", oneLine(err))
		}
		return s, nil
	}
}

// oneLine joins several faults in one line, as people grep for it.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
