//go:build !race

package testbinary

var raceFlags []string
