package rpc

import "github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"

// itemService has nothing to show as long as the ledger has no items.
type itemService struct {
	quoratev1connect.UnimplementedItemServiceHandler
	core
}
