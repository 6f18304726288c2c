package server

import (
	"context"
	"os"
	"reflect"

	"github.com/hashicorp/go-hclog"
)

// reloader follows SIGHUP: it reads the settings again and applies those that can change while the server runs.
type reloader struct {
	load func() (Settings, error)
	now  Settings
	log  hclog.Logger
	// steps apply the new settings, in order. Each step runs at every reload, also when no setting has changed, because a
	// file that a setting names may have changed. A step that fails leaves its part of the server as it was.
	steps []reloadStep
}

type reloadStep struct {
	what  string
	apply func(Settings) error
}

func reloadLogLevel(logger hclog.Logger) reloadStep {
	return reloadStep{"log-level", func(s Settings) error {
		logger.SetLevel(hclog.LevelFromString(s.LogLevel))
		return nil
	}}
}

func (r *reloader) follow(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-hangups:
			r.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload logs what it did. Settings that cannot be read change nothing.
func (r *reloader) reload() {
	next, err := r.load()
	if err != nil {
		r.log.Error("the settings were not reloaded, the old ones stay in effect", "error", err)
		return
	}
	next = r.keepRestartOnly(next)
	for _, step := range r.steps {
		if err := step.apply(next); err != nil {
			r.log.Error("could not reload, the old state stays in effect", "what", step.what, "error", err)
		}
	}
	r.now = next
	r.log.Info("reloaded the settings")
}

// keepRestartOnly logs which settings have changed, and puts back the present value of those that only a restart
// changes.
func (r *reloader) keepRestartOnly(next Settings) Settings {
	present, updated := reflect.ValueOf(r.now), reflect.ValueOf(&next).Elem()
	for _, s := range settingFields() {
		before, after := present.FieldByIndex(s.field.Index), updated.FieldByIndex(s.field.Index)
		if reflect.DeepEqual(before.Interface(), after.Interface()) {
			continue
		}
		if s.reloads {
			r.log.Info("a setting has changed", "setting", s.key)
			continue
		}
		r.log.Warn("a changed setting needs a restart", "setting", s.key)
		after.Set(before)
	}
	return next
}
