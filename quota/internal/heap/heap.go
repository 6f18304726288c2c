// Package heap is a priority queue whose elements know their places, so that any of them can be changed or removed.
//
// It is ours only for that: the rest is container/heap.
package heap

import "container/heap"

// Heap is a priority queue of pointers or other small values. It is not safe for concurrent use.
type Heap[T any] struct{ elements elements[T] }

// New returns an empty heap. Equal sequences of calls give equal orders, also where before decides nothing. index
// returns where an element keeps its place for the heap: 0 while it is not in the heap.
func New[T any](before func(a, b T) bool, index func(T) *int) *Heap[T] {
	return &Heap[T]{elements[T]{before: before, index: index}}
}

// Len is the number of elements.
func (h *Heap[T]) Len() int { return len(h.elements.list) }

// First is the element before all others. The heap must not be empty.
func (h *Heap[T]) First() T { return h.elements.list[0] }

// Contains reports whether an element is in the heap, at the cost of a field.
func (h *Heap[T]) Contains(element T) bool { return *h.elements.index(element) != 0 }

// Push adds an element, or restores the order if it is in the heap already and has changed. It costs the logarithm of
// the length.
func (h *Heap[T]) Push(element T) {
	if place := *h.elements.index(element); place != 0 {
		heap.Fix(&h.elements, place-1)
		return
	}
	heap.Push(&h.elements, element)
}

// Remove takes an element out, if it is in the heap. It costs the logarithm of the length.
func (h *Heap[T]) Remove(element T) {
	if place := *h.elements.index(element); place != 0 {
		heap.Remove(&h.elements, place-1)
	}
}

// elements is what container/heap works on. Places are counted from 1.
type elements[T any] struct {
	list   []T
	before func(a, b T) bool
	index  func(T) *int
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (e *elements[T]) Len() int { return len(e.list) }

// Less is the order of the heap.
func (e *elements[T]) Less(i, j int) bool { return e.before(e.list[i], e.list[j]) }

// Swap keeps both places.
func (e *elements[T]) Swap(i, j int) {
	e.list[i], e.list[j] = e.list[j], e.list[i]
	*e.index(e.list[i]), *e.index(e.list[j]) = i+1, j+1
}

// Push appends an element.
func (e *elements[T]) Push(x any) {
	element, _ := x.(T)
	e.list = append(e.list, element)
	*e.index(element) = len(e.list)
}

// Pop removes the last element.
func (e *elements[T]) Pop() any {
	end := len(e.list) - 1
	last := e.list[end]
	var none T
	e.list[end] = none
	e.list = e.list[:end]
	*e.index(last) = 0
	return last
}
