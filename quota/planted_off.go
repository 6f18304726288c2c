//go:build !planted

package quota

import "iter"

// Planted is always false; see planted_on.go.
func Planted(string) bool { return false }

// PlantedHere is always false; see planted_on.go.
func PlantedHere(string) bool { return false }

func ordered[K comparable, V any](all iter.Seq2[K, V]) iter.Seq2[K, V] { return all }

func forgetHolders(*Ledger) {}
