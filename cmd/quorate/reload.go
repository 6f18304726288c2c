package main

import (
	"context"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// reloading follows SIGHUP: it reads the settings again, from the same file, environment and flags, and carries out those
// that can change while the server runs.
type reloading struct {
	load func() (settings, error)
	now  settings
	log  hclog.Logger
	// steps carry the new settings out, in order. Each is told of every reload, also of one that changed no setting,
	// because a file that a setting names may have changed. One that fails leaves things as they were.
	steps []reloadStep
}

// reloadStep is one part of the server that can be told of new settings.
type reloadStep struct {
	what  string
	apply func(settings) error
}

// follow reloads at each SIGHUP until ctx ends.
func (r *reloading) follow(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			r.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload says what it did. Settings that cannot be read change nothing.
func (r *reloading) reload() {
	next, err := r.load()
	if err != nil {
		r.log.Error("the settings were not reloaded, the old ones go on", "error", err)
		return
	}
	next = r.keepFixed(next)
	for _, step := range r.steps {
		if err := step.apply(next); err != nil {
			r.log.Error("could not reload, the old state goes on", "what", step.what, "error", err)
		}
	}
	r.now = next
	r.log.Info("reloaded the settings")
}

// keepFixed gives the settings that only a restart changes their present values back, and names them.
func (r *reloading) keepFixed(next settings) settings {
	was, will := reflect.ValueOf(r.now), reflect.ValueOf(&next).Elem()
	for _, s := range allSettings() {
		before, after := was.FieldByIndex(s.field.Index), will.FieldByIndex(s.field.Index)
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
