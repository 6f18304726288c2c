// Package access decides who may do what: verbs, roles, bindings, callers, and the book of accounts, tokens and rules.
//
// It is a part of the replicated state machine and therefore pure: no clock, randomness, cryptography, I/O or
// goroutine. Time is an argument, and equal inputs give equal results on every replica.
//
// Start with verb.go and role.go for what may be done, binding.go for how it is given, rights.go for the decision
// ([Allows], [RightsAt]), cover.go for who may give it ([Covers]), rule.go for what a change of the configuration asks
// ([FieldChange.Asks]), and book.go with command.go for the state ([Book], [Command]). DESIGN.md has the model and the
// table of rules.
package access
