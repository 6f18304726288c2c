package server

import (
	"maps"
	"strings"
	"testing"
)

func TestFrontEndsOfTheSetting(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		want    map[string]string
		fault   string
	}{
		"none": {nil, map[string]string{}, ""},
		"all": {
			[]string{"yunikorn", "boskos=10.0.0.1:8080", "keystone"},
			map[string]string{"yunikorn": "", "boskos": "10.0.0.1:8080", "keystone": ""},
			"",
		},
		"an unknown one":             {[]string{"slurm"}, nil, `front-ends has "slurm": allowed are boskos=HOST:PORT, keystone`},
		"an empty one":               {[]string{""}, nil, `front-ends has "": allowed are`},
		"Boskos without an address":  {[]string{"boskos"}, nil, `front-ends has "boskos": allowed is boskos=HOST:PORT`},
		"Boskos without a port":      {[]string{"boskos=10.0.0.1"}, nil, "allowed is boskos=HOST:PORT"},
		"an address for a path":      {[]string{"keystone=:80"}, nil, "keystone is served below /keystone/ on the address"},
		"one twice":                  {[]string{"yunikorn", "yunikorn"}, nil, "front-ends has yunikorn twice"},
		"Boskos twice, two adresses": {[]string{"boskos=a:1", "boskos=a:2"}, nil, "front-ends has boskos twice"},
	} {
		served, err := ParseFrontEnds(c.entries)
		if c.fault == "" && (err != nil || !maps.Equal(served, c.want)) {
			t.Errorf("%s: %v, %v", name, served, err)
		}
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}
