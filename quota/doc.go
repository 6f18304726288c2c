// Package quota is the vocabulary of the quota service: what can be configured, what can be asked, and what is
// answered.
//
// It has types and pure rules only. Read command.go for everything that can change the state (a [Command] is one log
// entry), spec.go for the configuration of trees, decision.go for the answer to an [Allocate], info.go for what readers
// get, errors.go for refusals, and bounds.go for every declared size. The state machine that carries commands out is
// package quota/ledger; the rules of trees are package quota/policy. The words are those of docs/glossary.md.
package quota
