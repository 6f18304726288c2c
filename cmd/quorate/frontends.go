package main

import (
	"net/http"

	"github.com/quorate/quorate/compat/yunikorn"
	"github.com/quorate/quorate/rpc"
)

// frontEnds answer in the words of other systems, on the API's port.
var frontEnds = []rpc.FrontEnd{
	{Pattern: "/ws/v1/", New: func(s rpc.Services) http.Handler { return yunikorn.NewHandler(s.Trees) }},
}
