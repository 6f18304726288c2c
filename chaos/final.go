package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// CheckFinal compares what every node holds at the end with what the workers were told, and with its own usage figures
// (P3, P9). All nodes must be up.
func CheckFinal(ctx context.Context, urls []string, operations []Operation) error {
	first, err := held(ctx, urls[0], 0)
	if err != nil {
		return err
	}
	broken := []error{checkHeld(first.amounts, operations)}
	for _, url := range urls {
		other, err := held(ctx, url, first.index)
		if err != nil {
			return err
		}
		if fmt.Sprint(other.amounts) != fmt.Sprint(first.amounts) {
			broken = append(broken, fmt.Errorf("P9: %s and %s hold different allocations at index %d", urls[0], url, first.index))
		}
		if other.used != other.sum() {
			broken = append(broken, fmt.Errorf("I1: %s counts %d units used, but its allocations add up to %d", url, other.used, other.sum()))
		}
	}
	return errors.Join(broken...)
}

func checkHeld(amounts map[string]int64, operations []Operation) error {
	must, may := StillHeld(operations)
	var broken []error
	for id := range must {
		if _, is := amounts[id]; !is {
			broken = append(broken, fmt.Errorf("P3: %s was granted and is not held", id))
		}
	}
	for id := range amounts {
		_, certain := must[id]
		_, possible := may[id]
		if !certain && !possible {
			broken = append(broken, fmt.Errorf("P3: %s is held, but was never granted or was released", id))
		}
	}
	return errors.Join(broken...)
}

// standing is what one node holds in the contended tree.
type standing struct {
	amounts map[string]int64
	used    int64
	index   uint64
}

func (s standing) sum() int64 {
	var sum int64
	for _, amount := range s.amounts {
		sum += amount
	}
	return sum
}

// held lists what a node holds. With an index it reads the node's own copy, once it has applied that much; without, it
// reads linearizably.
func held(ctx context.Context, url string, index uint64) (standing, error) {
	c, err := client.New([]string{url})
	if err != nil {
		return standing{}, err
	}
	read := &quoratev1.ReadOptions{MinIndex: index}
	if index > 0 {
		read.Consistency = quoratev1.Consistency_CONSISTENCY_STALE
	}
	usage, err := c.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{Tree: treeName, Read: read})
	if err != nil {
		return standing{}, fmt.Errorf("read usage from %s: %w", url, err)
	}
	s := standing{amounts: map[string]int64{}, used: usage.GetNodes()[0].GetResources()[0].GetSubtree(), index: usage.GetRead().GetIndex()}
	for token := ""; ; {
		page, err := c.Allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{Tree: treeName, PageToken: token, Read: read})
		if err != nil {
			return standing{}, fmt.Errorf("list allocations from %s: %w", url, err)
		}
		for _, a := range page.GetAllocations() {
			s.amounts[a.GetId()] = a.GetClaims()[0].GetAmounts()[resource]
		}
		if token = page.GetNextPageToken(); token == "" {
			return s, nil
		}
	}
}
