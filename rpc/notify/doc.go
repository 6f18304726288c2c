// Package notify wakes calls that wait for something to happen: watches, and requests that wait for their grant. One
// [Notifier] reads the feed of the node for all of them and wakes only those that may be concerned, so that a log entry
// costs those that have something to see of it and not all that are there.
package notify
