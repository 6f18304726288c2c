//go:build planted

package main

import (
	"os"

	"github.com/quorate/quorate/quota"
)

// The bug that this server has is that of the environment.
var _ = plant(os.Getenv("CHAOS_PLANTED"))

func plant(bug string) bool {
	quota.Plant(bug)
	return bug != ""
}
