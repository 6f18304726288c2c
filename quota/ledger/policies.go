package ledger

import "github.com/quorate/quorate/quota/policy"

// policies are those that a configuration may name; tests add more.
var policies = policy.Presets()
