package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/quota"
)

func TestDefaults(t *testing.T) {
	c := Config{
		ID: "n1", RaftAddr: "10.0.0.1:7201", GossipAddr: "10.0.0.1:7301",
		HTTPAdvertise: "10.0.0.1:7101",
	}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.RaftAdvertise != c.RaftAddr || c.GossipAdvertise != c.GossipAddr || c.Bounds != quota.DefaultBounds() ||
		c.SnapshotThreshold != 16384 || c.TrailingLogs != 16384 || c.SnapshotInterval != time.Minute ||
		c.TimeoutScale != 1 ||
		c.StabilizationTime != 10*time.Second || c.MinQuorum != 3 || c.RemoveDeadAfter != 0 || c.ManualJoin {
		t.Errorf("defaults: %+v", c)
	}
}

func TestValidationNamesFieldAndAllowedValues(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Config)
		want   []string // parts of the error; nil if it is allowed
	}{
		{"as it should be", func(*Config) {}, nil},
		{"no id", func(c *Config) { c.ID = "" }, []string{"ID", "1 to 64"}},
		{"a blank in the id", func(c *Config) { c.ID = "n 1" }, []string{"ID", `"n 1"`}},
		{
			"a long cluster name", func(c *Config) { c.ClusterName = strings.Repeat("x", 65) },
			[]string{"ClusterName", "1 to 64"},
		},
		{"no port", func(c *Config) { c.RaftAdvertise = "10.0.0.1" }, []string{"RaftAdvertise", "host:port"}},
		{"port zero", func(c *Config) { c.RaftAdvertise = "10.0.0.1:0" }, []string{"RaftAdvertise", "1 to 65535"}},
		{"any host", func(c *Config) { c.RaftAdvertise = "0.0.0.0:7201" }, []string{"RaftAdvertise", "advertise"}},
		{"any IPv6 host", func(c *Config) { c.HTTPAdvertise = "[::]:7101" }, []string{"HTTPAdvertise", "advertise"}},
		{"a host name", func(c *Config) { c.RaftAdvertise = "quorate-0.quorate:7201" }, nil},
		{
			"an even number of nodes", func(c *Config) { c.BootstrapExpect = 2 },
			[]string{"BootstrapExpect", "1, 3, 5 or 7"},
		},
		{"a negative number of nodes", func(c *Config) { c.BootstrapExpect = -1 }, []string{"BootstrapExpect"}},
		{
			"alone among others", func(c *Config) { c.BootstrapExpect, c.Join = 1, []string{"10.0.0.2:7301"} },
			[]string{"Join", "10.0.0.2:7301"},
		},
		{"alone, joining itself", func(c *Config) { c.BootstrapExpect, c.Join = 1, []string{"10.0.0.1:7301"} }, nil},
		{
			"a join address without port", func(c *Config) { c.Join = []string{"10.0.0.2"} },
			[]string{"Join", "host:port"},
		},
		{"too patient", func(c *Config) { c.TimeoutScale = 11 }, []string{"TimeoutScale", "1 to 10"}},
		{"no time zones", func(c *Config) { c.TimeZones = "testdata" }, []string{"time zones in testdata", "tzdata.zi"}},
		{"a long version", func(c *Config) { c.Version = strings.Repeat("v", 41) }, []string{"Version", "40"}},
		{
			"a level before its time", func(c *Config) { c.RaiseLevelAfter = -1 },
			[]string{"RaiseLevelAfter", "0 for never"},
		},
		{
			"checkpoints without a pause", func(c *Config) { c.CheckpointEvery = time.Millisecond },
			[]string{"CheckpointEvery", "1s or more"},
		},
		{"a minute of silence", func(c *Config) { c.RemoveDeadAfter = time.Minute }, nil},
		{
			"a second of silence", func(c *Config) { c.RemoveDeadAfter = time.Second },
			[]string{"RemoveDeadAfter", "1m0s or more, or 0"},
		},
		{
			"stable before it began", func(c *Config) { c.StabilizationTime = -1 },
			[]string{"StabilizationTime", "positive"},
		},
		{"no voters", func(c *Config) { c.MinQuorum = -1 }, []string{"MinQuorum", "1 to 100"}},
		{"no interval", func(c *Config) { c.SnapshotInterval = -1 }, []string{"SnapshotInterval"}},
		{
			"several faults are all named", func(c *Config) { c.ID, c.BootstrapExpect, c.TimeoutScale = "", 4, 20 },
			[]string{"ID", "BootstrapExpect", "TimeoutScale"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{
				ID: "n1", RaftAddr: "10.0.0.1:7201", GossipAddr: "10.0.0.1:7301",
				HTTPAdvertise: "10.0.0.1:7101",
			}.WithDefaults()
			tc.change(&c)
			err := c.Validate()
			if tc.want == nil && err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
}
