// Package deps pins modules until the rooms that need them are built.
package deps
