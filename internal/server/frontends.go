package server

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/compat/boskos"
	keystone "github.com/quorate/quorate/compat/keystone/rest"
	"github.com/quorate/quorate/compat/yunikorn"
	"github.com/quorate/quorate/rpc"
)

// Names of the front ends of other systems in the setting front-ends, in callers and in bindings.
const (
	boskosName   = "boskos"
	keystoneName = "keystone"
	yunikornName = "yunikorn"
)

// frontEndPaths are the paths of front ends on the address of the API. Boskos's clients take the host of their URL and
// replace the path, so they have an address of their own; its paths here tell a client with the wrong address.
var frontEndPaths = map[string][]string{
	boskosName:   boskos.Paths,
	keystoneName: {keystone.Prefix, keystone.VersionsPath},
	yunikornName: {yunikorn.Prefix},
}

// ParseFrontEnds reads the setting front-ends: the front ends to serve, each with its address, which is empty for that
// of the API.
func ParseFrontEnds(entries []string) (map[string]string, error) {
	served := map[string]string{}
	for _, entry := range entries {
		name, address, hasAddress := strings.Cut(entry, "=")
		_, known := frontEndPaths[name]
		_, twice := served[name]
		_, _, err := net.SplitHostPort(address)
		switch {
		case !known:
			return nil, fmt.Errorf("front-ends has %q: allowed are boskos=HOST:PORT, keystone and yunikorn", entry)
		case twice:
			return nil, fmt.Errorf("front-ends has %s twice: name each front end once", name)
		case name == boskosName && err != nil:
			return nil, fmt.Errorf("front-ends has %q: allowed is boskos=HOST:PORT, because clients of Boskos need an "+
				"address of their own", entry)
		case name != boskosName && hasAddress:
			return nil, fmt.Errorf("front-ends has %q: %s is served below %s on the address of the API, so it has no "+
				"address; write %s", entry, name, frontEndPaths[name][0], name)
		}
		served[name] = address
	}
	return served, nil
}

// servedFrontEnds is ParseFrontEnds for settings that are valid.
func (s Settings) servedFrontEnds() map[string]string {
	served, _ := ParseFrontEnds(s.FrontEnds) // Validate reports the error
	return served
}

// boskosAddr is empty if clients of Boskos are not served.
func (s Settings) boskosAddr() string { return s.servedFrontEnds()[boskosName] }

// apiFrontEnds speak the protocols of other systems on the API's port, and show the plain page. Those that are not
// served say so.
func apiFrontEnds(s Settings) []rpc.FrontEnd {
	served := s.servedFrontEnds()
	list := []rpc.FrontEnd{}
	for _, name := range slices.Sorted(maps.Keys(frontEndPaths)) {
		_, on := served[name]
		for _, path := range frontEndPaths[name] {
			f := newFrontEnd(name)
			f.Pattern = path
			switch {
			case name == boskosName:
				f = f.Off("clients of Boskos have an address of their own, and this is that of the API: the setting " +
					"front-ends of the server names theirs (boskos=HOST:PORT)")
			case !on:
				f = f.Off("the front end for " + name + " is off: add " + name + " to the setting front-ends of the servers")
			}
			list = append(list, f)
		}
	}
	if s.UI != uiOff {
		list = append(list, plainPage)
	}
	return list
}

// keystoneTrees are the calls that the front end "keystone" makes.
type keystoneTrees struct {
	quoratev1connect.TreeServiceClient
	adminv1connect.ConfigurationServiceClient
}

// newFrontEnd has the handler of a front end on the address of the API.
func newFrontEnd(name string) rpc.FrontEnd {
	switch name {
	case keystoneName:
		return rpc.FrontEnd{ //nolint:gosec // TokenHeader is the name of a header
			Name: name, TokenHeader: "X-Auth-Token", WriteError: keystone.WriteError, NeedsCaller: keystone.NeedsCaller,
			New: func(s rpc.Services) http.Handler {
				return keystone.NewHandler(keystoneTrees{s.Trees, s.Configuration}, keystone.Options{Caller: rpc.CallerName})
			},
		}
	case yunikornName:
		return rpc.FrontEnd{
			Name: name, WriteError: yunikorn.WriteError, NeedsCaller: yunikorn.NeedsCaller,
			New: func(s rpc.Services) http.Handler { return yunikorn.NewHandler(s.Trees) },
		}
	default:
		return rpc.FrontEnd{Name: name, WriteError: boskos.WriteError}
	}
}

func openFrontEnds(s Settings) []string {
	if s.BoskosOpen {
		return []string{boskosName}
	}
	return nil
}

// boskosFrontEnd returns the handler of the Boskos protocol and registers its metrics.
func boskosFrontEnd(api *rpc.Server, p Process) (http.Handler, error) {
	logger := p.Log.Named("boskos")
	var front *boskos.Handler
	newHandler := func(s rpc.Services) http.Handler {
		front = boskos.NewHandler(
			boskos.API{Allocations: s.Allocations, Items: s.Items, Trees: s.Trees}, boskos.Options{
				Caller: rpc.CallerName, IsGuarded: api.IsGuarded,
				Notice: func(err error) { logger.Warn("counting Boskos's resources for the metrics", "error", err) },
			})
		return front
	}
	f := newFrontEnd(boskosName)
	f.New = newHandler
	f.NeedsCaller = func(r *http.Request) bool { return r.Method == http.MethodPost } // all others only read
	handler := api.FrontEnd(f)
	if err := p.Telemetry.labelled.Register(front); err != nil {
		return nil, fmt.Errorf("registering the metrics of Boskos: %w", err)
	}
	return handler, nil
}
