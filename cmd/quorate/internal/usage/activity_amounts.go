package usage

import (
	"maps"
	"slices"

	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

// amountsHeading is that of amountRows.
var amountsHeading = []string{"AT", "RESOURCE", "USED", "LIMIT", "HIGHEST", "WAITING", "CURVE"}

// amountRows has a row for each resource of a node: the amounts of the last step, the highest use, and the use over all
// steps as a curve.
func amountRows(at cli.Place, steps []*quoratev1beta1.ActivityStep) [][]string {
	var rows [][]string
	for _, resource := range slices.Sorted(maps.Keys(steps[len(steps)-1].GetAmounts())) {
		last := steps[len(steps)-1].GetAmounts()[resource]
		used := make([]int64, len(steps))
		for i, step := range steps {
			used[i] = step.GetAmounts()[resource].GetUsed()
		}
		highest := slices.Max(used)
		write := func(amount int64) string { return quantity.Format(amount, last.GetUnit()) }
		rows = append(rows, []string{
			at.String(), resource, write(last.GetUsed()), manifest.FormatLimit(last.GetLimit(), last.GetUnit()),
			write(highest), write(last.GetWaiting()),
			curve(used, max(highest, last.GetLimit().GetAmount(), last.GetLimit().GetAdvisory())),
		})
	}
	return rows
}

// curveWidth is the most characters of a curve.
const curveWidth = 48

// curve draws amounts from 0 to a highest one, as bars of eight heights. Where there are more amounts than characters,
// a character has the highest of those that it stands for. No bar is an amount of 0.
func curve(amounts []int64, highest int64) string {
	each := (len(amounts) + curveWidth - 1) / curveWidth
	var bars []rune
	for part := range slices.Chunk(amounts, max(1, each)) {
		height := 0
		if top := slices.Max(part); top > 0 {
			height = 1 + int(float64(top)/float64(highest)*7)
		}
		bars = append(bars, []rune(" ▁▂▃▄▅▆▇█")[height])
	}
	return string(bars)
}
