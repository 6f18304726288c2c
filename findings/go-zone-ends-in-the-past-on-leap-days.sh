#!/usr/bin/env bash
# One would believe: the end that time.Time.ZoneBounds tells is behind the instant that is asked about, so that a loop
# over the changes of a clock goes forwards by taking each end as the next instant.
# What happens (Go 1.26.8, time/tzdata): on the last day of a leap year, in the years behind the last change that the
# table lists (from 2038 on; with the smaller tables of "zic -b slim" from the first leap year behind that change), the
# end is the midnight before, in UTC: the last span of a year that the rule of the zone yields ends 365 days after the
# year's begin. The offset itself is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module zones

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"
)

func main() {
	for _, name := range []string{"Europe/Zurich", "America/New_York", "Australia/Sydney"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		for _, year := range []int{2039, 2040} {
			at := time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC)
			_, end := at.In(zone).ZoneBounds()
			fmt.Println(name, at.Format("2006-01-02"), end.UTC().Format("2006-01-02T15:04"), end.After(at))
		}
	}
}
GO
ZONEINFO='' GOTOOLCHAIN=go1.26.8 go run . | tee seen
[ "$(grep -c '2039-12-31 2040-01-01T00:00 true' seen)" = 3 ]
[ "$(grep -c '2040-12-31 2040-12-31T00:00 false' seen)" = 3 ]
echo "as described"
