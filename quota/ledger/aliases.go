package ledger

import (
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/explain"
	"github.com/quorate/quorate/quota/ledger/internal/image"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// What other packages know of the layers.
type (
	Allocation        = state.Allocation
	AllocationImage   = image.AllocationImage
	AlternativeImage  = image.AlternativeImage
	BlockerImage      = image.BlockerImage
	ClaimsKey         = state.ClaimsKey
	CrossedImage      = image.CrossedImage
	DisplacementImage = image.DisplacementImage
	DynamicNodeImage  = admit.DynamicNodeImage
	Explained         = explain.Explained
	Fact              = state.Fact
	FactKind          = state.FactKind
	Header            = image.Header
	HeldItemImage     = image.HeldItemImage
	HoldImage         = state.HoldImage
	ItemBeforeImage   = admit.ItemBeforeImage
	ItemImage         = state.ItemImage
	NodeImage         = image.NodeImage
	Origin            = state.Origin
	Outcome           = state.Outcome
	PastConfiguration = configure.PastConfiguration
	Reader            = read.Reader
	ScheduledImage    = image.ScheduledImage
	Snapshot          = image.Snapshot
	TreeImage         = image.TreeImage
	TreeVersionImage  = admit.TreeVersionImage
	UndoImage         = admit.UndoImage
	WaitingImage      = image.WaitingImage
)

// The kinds of facts.
const (
	FactCleared       = state.FactCleared
	FactConfigured    = state.FactConfigured
	FactConfirmed     = state.FactConfirmed
	FactCrossed       = state.FactCrossed
	FactEnded         = state.FactEnded
	FactGranted       = state.FactGranted
	FactNode          = state.FactNode
	FactResizeDropped = state.FactResizeDropped
	FactResizeWaits   = state.FactResizeWaits
	FactResized       = state.FactResized
	FactRestored      = state.FactRestored
	FactRevoked       = state.FactRevoked
	FactShrunk        = state.FactShrunk
	FactWaiting       = state.FactWaiting
)
